"""Postings: complete and compact."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.storage.postings import (
    POSTINGS,
    OffsetSpans,
    Spots,
    TermOffsets,
    left_without,
    merged_postings,
    postings_of,
)

ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 1 << 62) | st.integers(0, 30_000)), max_size=200
)


def offsets_of(rows: list[tuple[int, int, int]]) -> TermOffsets:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return TermOffsets(table[:, 0].copy(), table[:, 1].astype(np.int32), table[:, 2].copy())


def number(value: int) -> np.ndarray:
    return np.array([value], np.int64)


@given(rows=ROWS, cut=st.integers(0, 200), most=st.integers(1, 300), data=st.data())
def test_no_posting_is_missed_and_exact_ones_are_exact(
    rows: list[tuple[int, int, int]], cut: int, most: int, data: st.DataObject
) -> None:
    whole = postings_of(offsets_of(rows), most)
    parts = [postings_of(offsets_of(part), most) for part in (rows[:cut], rows[cut:])]
    merged = merged_postings(parts, most)
    assert whole.schema == merged.schema == POSTINGS
    low = data.draw(st.sampled_from([offset for _, _, offset in rows] or [0]))
    high = low + data.draw(st.sampled_from([0, 1, 5_000]))
    for term in range(-2, 3):
        mine = {(partition, offset) for name, partition, offset in rows if name == term}
        for table in (whole, merged):
            spots = Spots.of([table], term)
            for partition in range(3):
                inside = any(it == partition and low <= offset <= high for it, offset in mine)
                touched = bool(spots.touch(number(partition), number(partition), number(low), number(high))[0])
                assert touched or not inside
                if table.column("granules").null_count == len(table):
                    assert touched == inside
    terms = merged.column("transform_value").to_pylist()
    assert terms == sorted(terms)


def test_repeated_offsets_are_one_posting() -> None:
    assert postings_of(offsets_of([(1, 0, 5), (1, 0, 5), (1, 0, 6)]), 64).num_rows == 2


def test_a_frequent_term_becomes_one_row() -> None:
    table = postings_of(offsets_of([(1, 0, offset) for offset in range(100_000)] + [(2, 0, 7)]), 64)
    assert table.num_rows == 2
    assert table.nbytes < 300
    spots = Spots.of([table], 1)
    assert spots.touch(number(0), number(9), number(99_999), number(99_999))[0]
    assert not spots.touch(number(0), number(9), number(200_000), number(300_000))[0]
    assert not spots.touch(number(1), number(9), number(0), number(300_000))[0]


def test_a_box_of_several_partitions_is_touched_by_each() -> None:
    spots = Spots.of([postings_of(offsets_of([(1, 2, 10)]), 64)], 1)
    assert spots.touch(
        np.array([0, 2, 3]), np.array([2, 2, 9]), number(5).repeat(3), number(10).repeat(3)
    ).tolist() == [
        True,
        True,
        False,
    ]


SPANS = st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 9_000)), min_size=1, max_size=4)


@given(rows=ROWS, most=st.integers(1, 9), spans=SPANS, is_strict=st.booleans())
def test_offsets_that_are_gone_leave_and_no_other_offset_does(
    rows: list[tuple[int, int, int]], most: int, spans: list[tuple[int, int]], *, is_strict: bool
) -> None:
    gone = OffsetSpans.of((start, start + size) for start, size in spans)
    left = left_without(postings_of(offsets_of(rows), most), {1: gone}, is_strict=is_strict)
    assert left.schema == POSTINGS
    borders = gone.border_granules()
    for term in range(-2, 3):
        spots = Spots.of([left], term)
        for name, partition, offset in rows:
            box = number(partition), number(partition), number(offset), number(offset)
            is_gone = partition == 1 and any(start <= offset < start + size for start, size in spans)
            is_cut = partition == 1 and bool(borders.meet(number(offset), number(offset + 1))[0])
            if name == term and not is_gone and not (is_strict and is_cut):
                assert spots.touch(*box).all()
            elif is_gone and (is_strict or not is_cut):
                assert not spots.touch(*box).any()
