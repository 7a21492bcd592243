"""Ranges end when the log proves it."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from archiver.errors import CorruptBatch, DataLoss, LeaderUnavailable
from archiver.kafka.range_reader import Fetched, RangeToRead, read_range
from archiver.wire import AbortedTransaction, DecodedBatches, DecodeLimits
from tests.support.kafka.message_sets import message, wrapper
from tests.support.kafka.record_batches import Record, build, marker, offsets, raw_batch

Script = Callable[[int, bool], bytes | Fetched]


def state(data: bytes = b"", *, stable: int = 100, high: int = 100, aborted: tuple[Any, ...] = ()) -> Fetched:
    return Fetched(data=data, aborted=aborted, high_watermark=high, last_stable_offset=stable, log_start_offset=0)


def read(script: Script, start: int, end: int, **how: Any) -> list[DecodedBatches]:
    return list(iter_range(script, start, end, **how))


def iter_range(
    script: Script, start: int, end: int, *, stall_seconds: float = 0.2, **how: Any
) -> Iterator[DecodedBatches]:
    def source(offset: int, *, peek: bool, last_epoch: int) -> Fetched:
        answer = script(offset, peek)
        return state(answer) if isinstance(answer, bytes) else answer

    return read_range(
        source,
        RangeToRead(start_offset=start, end_offset=end, **how),
        stall_seconds=stall_seconds,
        where={"topic": "t", "partition": 4},
    )


def batch(at: int, count: int = 1) -> bytes:
    return build([Record()] * count, base_offset=at)


def log(*batches: tuple[int, int], size: int = 1) -> Script:
    def script(offset: int, peek: bool) -> bytes:
        rest = [batch(at, count) for at, count in batches if at + count > offset]
        return b"".join(rest[: 1 if peek else size])

    return script


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pieces_follow_one_another(size: int) -> None:
    pieces = read(log((0, 5), (5, 5), (20, 5), (25, 5), size=size), 0, 30)
    assert [offset for piece in pieces for offset in offsets(piece)] == [*range(10), *range(20, 30)]
    assert [piece.start_offset for piece in pieces[1:]] == [piece.next_offset for piece in pieces[:-1]]
    assert (pieces[0].start_offset, pieces[-1].next_offset) == (0, 30)
    assert [piece.complete for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_an_empty_range_asks_for_nothing() -> None:
    (piece,) = read(lambda offset, peek: pytest.fail("asked"), 7, 7)
    assert (piece.start_offset, piece.next_offset, piece.complete, piece.records.num_rows) == (7, 7, True, 0)


def test_range_begins_and_ends_after_straddling_batches() -> None:
    pieces = read(log((0, 10), (10, 10), (20, 10)), 5, 15)
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(10, 20))
    assert (pieces[0].start_offset, pieces[-1].next_offset) == (10, 20)


def test_a_range_inside_one_batch_is_empty_and_lies_behind_it() -> None:
    (piece,) = read(log((0, 100)), 5, 15)
    assert (piece.start_offset, piece.next_offset, piece.complete) == (100, 100, True)


def test_cut_head() -> None:
    pieces = read(log((0, 10), (10, 10)), 5, 20, cut_head=True)
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(5, 20))
    assert pieces[0].start_offset == 5


def test_a_batch_of_the_next_range_ends_this_one() -> None:
    (first, second) = read(log((0, 5), (50, 5)), 0, 20)
    assert (first.next_offset, second.start_offset, second.next_offset, second.complete) == (5, 5, 20, True)


def test_silence_ends_a_range_only_at_an_open_transaction() -> None:
    def compacted_up_to_an_open_transaction(offset: int, peek: bool) -> Fetched:
        if offset < 5:
            return state(batch(0, 5), stable=20)
        return state(batch(20), stable=20) if peek else state(stable=20)

    pieces = read(compacted_up_to_an_open_transaction, 0, 20)
    assert (pieces[-1].next_offset, pieces[-1].complete) == (20, True)


def test_silence_alone_is_not_the_end() -> None:
    with pytest.raises(LeaderUnavailable) as caught:
        read(lambda offset, peek: state(), 0, 20)
    assert caught.value.retryable
    assert caught.value.context["partition"] == 4


def test_a_log_that_was_cut_back_is_a_loss() -> None:
    with pytest.raises(DataLoss, match=r"\[12, 20\)"):
        read(lambda offset, peek: state(stable=12, high=12), 0, 20)


def test_a_moment_of_silence_is_waited_out() -> None:
    asked = []

    def slow(offset: int, peek: bool) -> Fetched:
        asked.append(peek)
        return state(batch(0, 20)) if len(asked) > 3 else state(stable=5)

    assert offsets(read(slow, 0, 20)[0]) == list(range(20))


def test_a_partial_last_batch_is_fetched_again() -> None:
    def script(offset: int, peek: bool) -> bytes:
        return batch(0, 5) + batch(5, 5)[:70] if offset == 0 else batch(5, 5)

    assert [offset for piece in read(script, 0, 10) for offset in offsets(piece)] == list(range(10))


def test_a_first_batch_that_never_comes_whole_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="longer than the broker has it") as caught:
        read(lambda offset, peek: batch(0, 5)[:-1], 0, 5)
    assert caught.value.context["topic"] == "t"


def test_batches_from_before_the_offset_are_no_progress() -> None:
    with pytest.raises(CorruptBatch, match="before the offset"):
        read(lambda offset, peek: batch(0, 5), 5, 10)


def test_corruption_is_located_after_the_whole_batches() -> None:
    bad = bytearray(batch(5, 5))
    bad[-1] ^= 1
    pieces = read_range(
        lambda offset, *, peek, last_epoch: state(batch(0, 5) if offset == 0 else bytes(bad)),
        RangeToRead(start_offset=0, end_offset=10, cut_head=False, limits=DecodeLimits()),
        stall_seconds=1,
        where={"topic": "t", "partition": 4},
    )
    assert offsets(next(pieces)) == list(range(5))
    with pytest.raises(CorruptBatch) as caught:
        next(pieces)
    assert caught.value.context == {"topic": "t", "partition": 4, "base_offset": 5, "position": 0}


def test_formats_that_follow_each_other() -> None:
    data = message(0, magic=0) + wrapper(3, [message(at) for at in range(3)], "gzip") + batch(4)
    pieces = read(lambda offset, peek: state(data), 0, 5)
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(5))
    with pytest.raises(CorruptBatch, match="topic='t'"):
        read(lambda offset, peek: wrapper(3, [], "gzip"), 0, 1)


def test_the_limits_split_a_piece_and_keep_its_transactions() -> None:
    data = (
        build([Record()], base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        + batch(1)
        + build([Record()], base_offset=2, producer_id=1, producer_epoch=0, base_sequence=1, transactional=True)
        + marker(base_offset=3, producer_id=1, commit=False)
        + build([Record()], base_offset=4, producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)
        + raw_batch([], base_offset=5)
    )
    aborted = (AbortedTransaction(producer_id=1, first_offset=0),)
    pieces = read(lambda offset, peek: state(data, aborted=aborted), 0, 6, limits=DecodeLimits(chunk=1))
    assert [offset for piece in pieces for offset in offsets(piece)] == [1, 4]
    assert len(pieces) > 1
    assert pieces[-1].next_offset == 6


def test_the_next_piece_is_fetched_while_this_one_is_used() -> None:
    second = threading.Event()

    def source(offset: int, *, peek: bool, last_epoch: int) -> Fetched:
        if offset == 5:
            second.set()
        return state(batch(offset, 5))

    pieces = read_range(
        source,
        RangeToRead(start_offset=0, end_offset=15, cut_head=False, limits=DecodeLimits()),
        stall_seconds=1,
        where={},
    )
    assert offsets(next(pieces)) == list(range(5))
    assert second.wait(5)
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(5, 15))


def test_leaving_a_range_early_ends_its_thread() -> None:
    pieces = read_range(
        lambda offset, *, peek, last_epoch: state(batch(0, 5) if offset == 0 else b""),
        RangeToRead(start_offset=0, end_offset=15, cut_head=False, limits=DecodeLimits()),
        stall_seconds=60,
        where={},
    )
    next(pieces)
    start = time.monotonic()
    pieces.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fetch")]


def test_batches_before_a_corrupt_one_are_given() -> None:
    whole = [batch(0, 5), batch(5, 5), batch(10, 5)]
    flipped, headless = bytearray(whole[2]), bytearray(whole[2])
    flipped[-1] ^= 1
    headless[16] = 9
    for bad in (flipped, headless):
        data = whole[0] + whole[1] + bytes(bad) + batch(15, 5)
        pieces = iter_range(lambda offset, peek, data=data: data, 0, 20)  # type: ignore[misc]
        assert offsets(next(pieces)) == list(range(10))
        with pytest.raises(CorruptBatch) as caught:
            next(pieces)
        assert caught.value.context["base_offset"] == 10
        assert offsets(read(lambda offset, peek, data=data: data, 0, 10)[0]) == list(range(10))


def test_a_batch_with_a_doubtful_offset_is_not_given() -> None:
    """No checksum covers the offset: if it doesn't rise, the batch before may be the wrong one."""
    pieces = iter_range(lambda offset, peek: batch(0, 5) + batch(90, 5) + batch(10, 5), 0, 100)
    assert offsets(next(pieces)) == list(range(5))
    with pytest.raises(CorruptBatch, match="do not follow"):
        next(pieces)


def test_records_that_contradict_themselves_leave_no_rows() -> None:
    bad = build([Record(), Record()], base_offset=5, count=3)
    aborted = (AbortedTransaction(producer_id=1, first_offset=0),)
    before = build([Record()], base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    pieces = iter_range(lambda offset, peek: state(before + batch(1, 4) + bad, aborted=aborted), 0, 20)
    assert offsets(next(pieces)) == [1, 2, 3, 4]
    with pytest.raises(CorruptBatch):
        next(pieces)


def test_a_corrupt_batch_with_a_far_last_offset_is_named() -> None:
    bad = bytearray(batch(5, 5))
    struct.pack_into(">i", bad, 23, 1 << 20)
    pieces = iter_range(lambda offset, peek: (batch(0, 5) if offset == 0 else b"") + bytes(bad) + batch(10, 5), 0, 20)
    assert offsets(next(pieces)) == list(range(5))
    with pytest.raises(CorruptBatch):
        next(pieces)
    with pytest.raises(CorruptBatch, match="checksum") as caught:
        read(lambda offset, peek: bytes(bad) + batch(10, 5), 5, 20)
    assert caught.value.context["base_offset"] == 5
