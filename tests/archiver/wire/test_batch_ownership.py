"""Neighbouring ranges share no record."""

from __future__ import annotations

import itertools

import pytest

from archiver.wire import AbortedTransaction, DecodeLimits, decode_batches
from tests.support.kafka.record_batches import Record, build, offsets

LOG = [build([Record()] * count, base_offset=at) for at, count in ((0, 10), (10, 1), (11, 9), (25, 5), (40, 1))]
DATA = b"".join(LOG)
ALL = [*range(20), *range(25, 30), 40]


@pytest.mark.parametrize("cut", range(42))
def test_a_range_owns_the_batches_that_begin_in_it(cut: int) -> None:
    left = decode_batches(DATA, start_offset=0, end_offset=cut)
    right = decode_batches(DATA, start_offset=cut, end_offset=41)
    assert offsets(left) + offsets(right) == ALL
    assert left.start_offset == 0
    assert left.complete
    assert cut <= left.next_offset == right.start_offset
    assert right.next_offset == max(41, right.start_offset)
    assert right.complete


@pytest.mark.parametrize(("low", "high"), [*itertools.combinations(range(1, 42, 3), 2)])
def test_three_ranges(low: int, high: int) -> None:
    parts = [decode_batches(DATA, start_offset=a, end_offset=b) for a, b in ((0, low), (low, high), (high, 41))]
    assert [offset for part in parts for offset in offsets(part)] == ALL


def test_a_range_inside_one_batch_owns_nothing() -> None:
    decoded = decode_batches(DATA, start_offset=3, end_offset=7)
    assert decoded.records.num_rows == 0
    assert (decoded.start_offset, decoded.next_offset, decoded.complete) == (10, 10, True)


def test_cut_head_keeps_the_rest_of_the_straddling_batch() -> None:
    decoded = decode_batches(DATA, start_offset=7, end_offset=11, cut_head=True)
    assert offsets(decoded) == [7, 8, 9, 10]
    assert decoded.records.column("batch_start").to_pylist() == [0, 0, 0, 10]
    assert decoded.batches.rows.tolist() == [3, 1]
    assert decoded.start_offset == 7


def test_cut_head_behind_the_last_record_of_a_compacted_batch() -> None:
    batch = build([Record()], deltas=[2], last_delta=9)
    decoded = decode_batches(batch, start_offset=5, end_offset=10, cut_head=True)
    assert decoded.records.num_rows == len(decoded.batches) == 0
    assert (decoded.start_offset, decoded.next_offset, decoded.complete) == (5, 10, True)


@pytest.mark.parametrize("size", range(len(LOG[0]), len(LOG[0]) + len(LOG[1])))
def test_a_trailing_part_of_a_batch_waits_for_the_next_fetch(size: int) -> None:
    decoded = decode_batches(DATA[:size], start_offset=0, end_offset=41)
    assert offsets(decoded) == list(range(10))
    assert (decoded.next_offset, decoded.consumed, decoded.complete) == (10, len(LOG[0]), False)


def test_work_stops_at_the_chunk_limit_and_goes_on_from_there() -> None:
    aborted = tuple(AbortedTransaction(producer_id=9, first_offset=at) for at in (500, 900))
    seen: list[int] = []
    data, start = memoryview(DATA), 0
    for _ in LOG:
        decoded = decode_batches(
            data, aborted=aborted, start_offset=start, end_offset=41, limits=DecodeLimits(chunk=1, batch=10_000)
        )
        seen += offsets(decoded)
        data, start, aborted = data[decoded.consumed :], decoded.next_offset, decoded.open_transactions
    assert seen == ALL
    assert decoded.complete
    assert not data
    assert [item.first_offset for item in aborted] == [500, 900]


def test_limits_that_arrow_could_not_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="2 GiB"):
        DecodeLimits(chunk=1 << 30, batch=1 << 30)
