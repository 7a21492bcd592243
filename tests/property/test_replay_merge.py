"""Merged sorted batches equal one sort."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.offset_order import merge_sorted, offsets_of, sorted_by_offset, split_at_offset
from archiver.archive.reorder_buffer import ReorderBuffer


def batch(offsets: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": pa.array(offsets, pa.int64()),
            "value": pa.array([b"%d" % offset for offset in offsets], pa.binary()),
        }
    )


@st.composite
def scattered(draw: st.DrawFn) -> list[pa.RecordBatch]:
    offsets = draw(st.lists(st.integers(0, 300), unique=True, max_size=120))
    owners = draw(st.lists(st.integers(0, 5), min_size=len(offsets), max_size=len(offsets)))
    dealt = [[offset for offset, owner in zip(offsets, owners, strict=True) if owner == value] for value in range(6)]
    return [sorted_by_offset(batch(value)) for value in dealt if value]


def rows(batches: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("piece", [1, 64, 8 << 20])
@given(batches=scattered())
def test_merging_is_sorting(batches: list[pa.RecordBatch], piece: int):
    result = rows(list(merge_sorted(batches, piece_bytes=piece)))
    assert result == sorted(rows(batches), key=lambda row: row["offset"])


@given(batches=scattered(), frontier=st.integers(-5, 310))
def test_splitting_loses_nothing(batches: list[pa.RecordBatch], frontier: int):
    below, rest = split_at_offset(batches, frontier)
    assert all(batch.num_rows for batch in below + rest)
    assert all(offsets_of(value)[-1] < frontier for value in below)
    assert all(offsets_of(value)[0] >= frontier for value in rest)
    assert len(rows(below)) + len(rows(rest)) == len(rows(batches))


@pytest.mark.parametrize("held", [0, 300, 1 << 20])
@pytest.mark.parametrize("fan_in", [2, 3])
@given(batches=scattered(), frontiers=st.lists(st.integers(0, 310), max_size=3))
def test_waiting_in_runs_on_disk_is_sorting(
    batches: list[pa.RecordBatch], frontiers: list[int], *, held: int, fan_in: int
):
    waiting = ReorderBuffer(held_bytes=held, fan_in=fan_in)
    expected = sorted(rows(batches), key=lambda row: row["offset"])
    result = []
    for number, value in enumerate(batches):
        waiting.add(value)
        for frontier in frontiers[number : number + 1]:
            least = [int(offsets_of(later)[0]) for later in batches[number + 1 :]]
            result += rows(list(waiting.take_below(min([frontier, *least]))))
    result += rows(list(waiting.take_below()))
    assert result == expected
    assert not waiting
