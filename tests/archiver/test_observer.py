"""Several observers as one."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from archiver.observer import all_of, ignore


def test_each_observer_is_told_each_event_in_turn() -> None:
    events: list[tuple[str, int]] = []
    tell = all_of(lambda event: events.append(("first", event)), ignore, lambda event: events.append(("second", event)))
    tell(1)
    tell(2)
    assert events == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_raising_observer_is_logged_once_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    events: list[int] = []
    calls: list[int] = []

    class Broken:
        def __call__(self, event: int) -> None:
            calls.append(event)
            if event == 2:
                raise OSError("disk full")

    tell = all_of(Broken(), events.append)
    with caplog.at_level(logging.ERROR):
        for number in range(5):
            tell(number)
    assert (calls, events) == ([0, 1, 2], [0, 1, 2, 3, 4])
    (record,) = caplog.records
    assert "Broken" in record.getMessage()
    assert record.exc_info is not None
    assert "disk full" in str(record.exc_info[1])


def test_one_that_fails_twice_inside_one_call_stops_nothing() -> None:
    def broken(event: int) -> None:
        if event:
            tell(event - 1)
        raise OSError("disk full")

    events: list[int] = []
    tell = all_of(broken, events.append)
    tell(1)
    assert events == [0, 1]


def test_who_stops_the_process_is_heard() -> None:
    def interrupt(event: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        all_of(interrupt)(1)


def test_threads_take_turns() -> None:
    turns: list[int] = []
    inside = threading.Lock()

    def one_at_a_time(event: int) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.001)
        inside.release()
        turns.append(event)

    tell = all_of(one_at_a_time)
    threads = [threading.Thread(target=lambda: [tell(number) for number in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == sorted([*range(20)] * 4)
