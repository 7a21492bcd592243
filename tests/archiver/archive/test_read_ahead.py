"""Streams that are read ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from archiver.archive.read_ahead import ReadAhead

WITHIN_S = 10.0


class Parts:
    def __init__(self, count: int, *, may_read: int = 0, fails_at: int | None = None) -> None:
        self.told: list[str] = []
        self.closed_by: list[int] = []
        self.is_reading = threading.Semaphore(0)
        self.is_closed = threading.Event()
        self._count, self._fails_at = count, fails_at
        self._permits = threading.Semaphore(may_read)

    def permit(self, parts: int = 1) -> None:
        self._permits.release(parts)

    def wait_for_a_read(self) -> None:
        assert self.is_reading.acquire(timeout=WITHIN_S)

    def stream(self) -> Iterator[int]:
        try:
            for number in range(self._count):
                self.told.append(f"asked for {number}")
                self.is_reading.release()
                assert self._permits.acquire(timeout=WITHIN_S)
                if number == self._fails_at:
                    raise ValueError("broken")
                self.told.append(f"read {number}")
                yield number
        finally:
            self.told.append("closed")
            self.closed_by.append(threading.get_ident())
            self.is_closed.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as opened:
        yield opened


def test_parts_come_in_order_and_the_end_stays_the_end(pool: ThreadPoolExecutor) -> None:
    parts = Parts(3, may_read=3)
    ahead = ReadAhead(parts.stream(), pool)
    assert [ahead.take() for _ in range(4)] == [0, 1, 2, None]
    ended = ahead.future
    assert ahead.take() is None
    assert ahead.future is ended, "nothing is read after the end"
    with ReadAhead(iter("abc"), pool) as letters:
        assert list(letters) == ["a", "b", "c"]


def test_only_one_part_is_read_ahead(pool: ThreadPoolExecutor) -> None:
    parts = Parts(9, may_read=9)
    with ReadAhead(parts.stream(), pool) as ahead:
        assert ahead.future.result(WITHIN_S) == 0
        assert ahead.take() == 0
        assert ahead.future.result(WITHIN_S) == 1
        pool.submit(int).result(WITHIN_S)
        assert parts.told == ["asked for 0", "read 0", "asked for 1", "read 1"]


def test_what_reading_raises_comes_after_the_parts_before_it(pool: ThreadPoolExecutor) -> None:
    ahead = ReadAhead(Parts(3, may_read=3, fails_at=1).stream(), pool)
    assert ahead.take() == 0
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            ahead.take()


@pytest.mark.parametrize("waits", [False, True])
def test_close_cancels_a_pending_read_and_closes_the_stream(pool: ThreadPoolExecutor, *, waits: bool) -> None:
    parts, gate = Parts(3, may_read=3), threading.Event()
    ahead = ReadAhead(parts.stream(), pool)
    assert ahead.future.result(WITHIN_S) == 0
    pool.submit(gate.wait, WITHIN_S)
    assert ahead.take() == 0
    ahead.close(waits=waits)
    assert parts.closed_by == [threading.get_ident()]
    gate.set()
    pool.submit(int).result(WITHIN_S)
    assert parts.told == ["asked for 0", "read 0", "closed"]
    with pytest.raises(CancelledError):
        ahead.take()


def test_close_does_not_wait_for_a_running_read(pool: ThreadPoolExecutor) -> None:
    parts = Parts(3)
    ahead = ReadAhead(parts.stream(), pool)
    parts.wait_for_a_read()
    ahead.close()
    assert parts.told == ["asked for 0"]
    parts.permit()
    assert parts.is_closed.wait(WITHIN_S)
    assert parts.told == ["asked for 0", "read 0", "closed"]


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_the_block_waits_for_the_running_read(pool: ThreadPoolExecutor, *, fails: bool) -> None:
    parts = Parts(3, may_read=1)
    later = threading.Timer(0.1, parts.permit)

    def worked_on() -> None:
        with ReadAhead(parts.stream(), pool) as ahead:
            assert ahead.take() == 0
            parts.wait_for_a_read()
            parts.wait_for_a_read()
            later.start()
            if fails:
                raise KeyError("of the work")

    if fails:
        with pytest.raises(KeyError, match="of the work"):
            worked_on()
    else:
        worked_on()
    assert parts.told == ["asked for 0", "read 0", "asked for 1", "read 1", "closed"]
    assert parts.closed_by == [threading.get_ident()]
    later.join(WITHIN_S)


def test_a_failed_read_is_no_error_of_who_closes(pool: ThreadPoolExecutor) -> None:
    parts = Parts(3, fails_at=0)
    with ReadAhead(parts.stream(), pool):
        parts.wait_for_a_read()
        parts.permit()
    assert parts.told == ["asked for 0", "closed"]


def test_what_closing_the_stream_raises_is_told_to_who_waits(pool: ThreadPoolExecutor) -> None:
    def stubborn() -> Iterator[int]:
        try:
            yield 0
        finally:
            raise OSError("the file can't be closed")

    ahead = ReadAhead(stubborn(), pool)
    assert ahead.future.result(WITHIN_S) == 0
    with pytest.raises(OSError, match="can't be closed"):
        ahead.close(waits=True)
