"""Aborted transactions leave no rows."""

from __future__ import annotations

from typing import Any

from archiver.wire import AbortedTransaction, DecodedBatches, decode_batches
from tests.support.kafka.record_batches import Record, build, marker, offsets, raw_batch

CONTROL = 0b100000


def written(at: int, producer_id: int, count: int = 1) -> bytes:
    return build(
        [Record()] * count,
        base_offset=at,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def decode(*batches: bytes, aborted: tuple[tuple[int, int], ...], **options: Any) -> DecodedBatches:
    listed = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    limits = {"start_offset": 0, "end_offset": 1000} | options
    return decode_batches(b"".join(batches), aborted=listed, **limits)


def test_commit_and_abort_of_interleaved_producers() -> None:
    decoded = decode(
        written(0, 1, 2),
        written(2, 2),
        build([Record()], base_offset=3),
        written(4, 1),
        marker(base_offset=5, producer_id=1, commit=False),
        written(6, 2),
        marker(base_offset=7, producer_id=2, commit=True),
        aborted=((1, 0),),
    )
    assert offsets(decoded) == [2, 3, 6]
    assert decoded.next_offset == 8
    assert decoded.open_transactions == ()


def test_a_producer_that_aborts_then_commits_then_aborts() -> None:
    log = [
        written(0, 1),
        marker(base_offset=1, producer_id=1, commit=False),
        written(2, 1),
        marker(base_offset=3, producer_id=1, commit=True),
        written(4, 1),
        marker(base_offset=5, producer_id=1, commit=False),
        written(6, 1),
    ]
    assert offsets(decode(*log, aborted=((1, 4), (1, 0)))) == [2, 6]


def test_aborted_list_may_start_before_or_in_first_batch() -> None:
    log = [written(10, 1, 5), marker(base_offset=15, producer_id=1, commit=False), written(16, 1)]
    assert offsets(decode(*log, aborted=((1, 3),), start_offset=10)) == [16]
    assert offsets(decode(*log, aborted=((1, 12),), start_offset=10)) == [16]


def test_an_aborted_producer_may_also_write_outside_transactions() -> None:
    assert offsets(decode(written(0, 1), build([Record()], base_offset=1, producer_id=1), aborted=((1, 0),))) == [1]


def test_markers_of_ranges_before_count_too() -> None:
    log = [written(0, 1), marker(base_offset=1, producer_id=1, commit=False), written(2, 1)]
    assert offsets(decode(*log, aborted=((1, 0),), start_offset=2)) == [2]


def test_control_batches_of_any_kind_leave_no_rows() -> None:
    empty = raw_batch([], base_offset=1, attributes=0b110000, producer_id=1)
    unknown = raw_batch([b"\x0c" + b"\0" * 6], base_offset=2, attributes=CONTROL)
    decoded = decode(marker(base_offset=0, producer_id=1, commit=True), empty, unknown, aborted=((1, 0),))
    assert decoded.records.num_rows == 0
    assert decoded.next_offset == 3


def test_transactions_still_open_are_given_back() -> None:
    decoded = decode(written(0, 1), aborted=((1, 0), (2, 50)))
    assert [(transaction.producer_id, transaction.first_offset) for transaction in decoded.open_transactions] == [
        (1, 0),
        (2, 50),
    ]
