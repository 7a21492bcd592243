"""Batches don't overlap and lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.archive.batches.borders import BatchSizes, whole_batches
from archiver.errors import StorageUnavailable
from archiver.wire.columns import RECORDS

MOST = 2**31 - 1


def rows(*records: dict[str, Any]) -> pa.RecordBatch:
    plain = {
        "timestamp": 0,
        "key": None,
        "value": b"value",
        "headers": [],
        "batch_start": -1,
        "batch_end": -1,
        "timestamp_type": 0,
        "append_timestamp": None,
        "leader_epoch": 0,
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": -1,
        "attributes": 0,
    }
    return pa.RecordBatch.from_pylist([plain | record for record in records], RECORDS)


def batch(start: int, end: int, offsets: list[int], **changes: Any) -> list[dict[str, Any]]:
    return [{"offset": offset, "batch_start": start, "batch_end": end} | changes for offset in offsets]


def borders(found: Iterator[pa.RecordBatch]) -> list[tuple[int, int, list[int], int]]:
    batches: list[tuple[int, int, list[int], int]] = []
    for piece in found:
        columns = (piece[name].to_pylist() for name in ("batch_start", "batch_end", "offset", "base_sequence"))
        for start, end, offset, sequence in zip(*columns, strict=True):
            if batches and batches[-1][0] == start:
                assert batches[-1][1] == end
                batches[-1][2].append(offset)
            else:
                batches.append((start, end, [offset], sequence))
    return batches


def pieces(records: list[dict[str, Any]], cuts: list[int]) -> Iterator[pa.RecordBatch]:
    bounds = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    for start, end in pairwise(bounds):
        yield rows(*records[start:end])


LOG = [*batch(0, 9, [2, 3, 9]), *batch(12, 15, [12]), *batch(16, 16, [16]), *batch(20, 25, [21, 22])]


@pytest.mark.parametrize("cuts", [[], [1], [2, 3], [1, 2, 3, 4, 5, 6], [4]])
@pytest.mark.parametrize(
    ("spans_gaps", "ends"), [(False, [9, 15, 16, 25]), (True, [11, 15, 19, 29])], ids=["as archived", "spanned"]
)
def test_borders_stay_wherever_files_are_cut(cuts: list[int], *, spans_gaps: bool, ends: list[int]):
    result = borders(whole_batches(pieces(LOG, cuts), end=30, sizes=BatchSizes(), spans_gaps=spans_gaps))
    assert [(start, offsets) for start, _, offsets, _ in result] == [
        (0, [2, 3, 9]),
        (12, [12]),
        (16, [16]),
        (20, [21, 22]),
    ]
    assert [end for _, end, _, _ in result] == ends


def test_a_batch_ends_before_the_end_that_was_asked_for():
    result = borders(whole_batches([rows(*batch(0, 9, [2, 3]))], end=4, sizes=BatchSizes()))
    assert result == [(0, 3, [2, 3], -1)], "whoever goes on after it must find what comes from 4 on"


def test_a_batch_ends_before_the_next_one_begins():
    log = [*batch(0, 9, [1, 6], base_sequence=5), *batch(7, 12, [8], base_sequence=3), *batch(4, 20, [13])]
    result = borders(whole_batches([rows(*log)], end=30, sizes=BatchSizes()))
    assert result == [(0, 6, [1, 6], 5), (7, 8, [8], 3), (9, 20, [13], -1)]


def test_parts_of_a_large_batch_count_on_sequences():
    log = batch(0, 9, [0, 2, 4, 5, 8], base_sequence=MOST - 3, value=b"x" * 100)
    result = borders(whole_batches(pieces(log, [3]), end=30, sizes=BatchSizes(unknown=1, largest=250)))
    assert result == [(0, 4, [0, 2, 4], MOST - 3), (5, 9, [5, 8], 1)]
    joined = [(start, end) for start, end, _, _ in result]
    assert joined == [(0, 4), (5, 9)]


@pytest.mark.parametrize(
    "stated",
    [{"batch_start": 11}, {"batch_end": 9}, {"batch_start": -5}, {"batch_end": 2**40}, {"batch_start": -1}],
    ids=str,
)
def test_borders_that_cannot_be_are_not_believed(stated: dict[str, int]):
    log = [{**value, **stated} for value in batch(8, 12, [10], base_sequence=4)]
    assert borders(whole_batches([rows(*log)], end=30, sizes=BatchSizes())) == [(10, 10, [10], -1)]


def test_rows_without_borders_are_put_together_by_size_and_reach():
    log = [{"offset": value, "value": b"x" * 84} for value in (0, 1, 2, 3, 4, 2**31 + 5, 2**31 + 6)]
    result = borders(whole_batches([rows(*log)], end=2**40, sizes=BatchSizes(unknown=200)))
    assert [offsets for _, _, offsets, _ in result] == [[0, 1], [2, 3], [4], [2**31 + 5], [2**31 + 6]]
    spanned = borders(whole_batches([rows(*log)], end=2**40, sizes=BatchSizes(unknown=200), spans_gaps=True))
    assert [(start, end) for start, end, _, _ in spanned][2:] == [
        (4, 4 + MOST),
        (2**31 + 5, 2**31 + 5),
        (2**31 + 6, 2**31 + 6 + MOST),
    ]


@pytest.mark.parametrize(
    "change",
    [{"producer_id": 8}, {"leader_epoch": 1}, {"attributes": 16}, {"timestamp_type": 1, "append_timestamp": 5}],
    ids=str,
)
def test_rows_without_borders_share_a_batch_by_header(change: dict[str, int]):
    log = [{"offset": 0}, {"offset": 1}, {"offset": 2} | change]
    assert [offsets for *_, offsets, _ in borders(whole_batches([rows(*log)], end=3, sizes=BatchSizes()))] == [
        [0, 1],
        [2],
    ]


def test_error_follows_earlier_records_and_hides_none():
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(*batch(0, 4, [0, 3]), *batch(5, 9, [6, 7]))
        raise StorageUnavailable("away")

    batches = whole_batches(failing(), end=30, sizes=BatchSizes(), spans_gaps=True)
    assert borders(iter([next(batches), next(batches)])) == [(0, 4, [0, 3], -1), (5, 7, [6, 7], -1)]
    with pytest.raises(StorageUnavailable):
        next(batches)


@st.composite
def any_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    offset, result = 0, []
    start = draw(st.integers(-2, 5))
    for _ in range(draw(st.integers(0, 14))):
        offset += draw(st.integers(1, 4))
        if draw(st.booleans()):
            start = draw(st.integers(-2, offset + 2))
        result.append(
            {
                "offset": offset,
                "batch_start": start,
                "batch_end": start + draw(st.sampled_from([0, 3, 9])),
                "base_sequence": draw(st.sampled_from([-1, 0, MOST])),
                "value": draw(st.none() | st.binary(max_size=40)),
                "headers": draw(st.sampled_from([[], [{"key": b"a", "value": None}, {"key": b"", "value": b"xy"}]])),
            }
        )
    return result


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(any_rows(), st.lists(st.integers(1, 14)), st.integers(1, 120), st.booleans(), st.integers(0, 9))
def test_no_record_is_lost_whatever_rows_state(
    log: list[dict[str, Any]], cuts: list[int], size: int, spans_gaps: bool, beyond: int
):
    end = log[-1]["offset"] + 1 + beyond if log else beyond
    sizes = BatchSizes(unknown=size, largest=2 * size)
    batches = list(whole_batches(pieces(log, cuts), end=end, sizes=sizes, spans_gaps=spans_gaps))
    together = pa.Table.from_batches(batches, RECORDS)
    for name in ("offset", "value", "headers"):
        assert together[name].to_pylist() == rows(*log)[name].to_pylist()
    last = -1
    for number, (first, until, offsets, _) in enumerate(borders(iter(batches))):
        assert last < first <= offsets[0]
        assert not number or not spans_gaps or first == last + 1
        assert offsets[-1] <= until < end
        last = until
    assert last == end - 1 or not spans_gaps or not log
