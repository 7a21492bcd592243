"""Signals end a job in order."""

from __future__ import annotations

import signal
import threading

import pytest

from archiver.ingest.stopping import SIGNALS, stop_on_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_within_a_wait_for_it_ends_the_wait(number: signal.Signals) -> None:
    """The handler runs while the main thread holds the event's lock."""
    with stop_on_signals() as stop:
        with stop._cond:  # type: ignore[attr-defined]
            signal.raise_signal(number)
        assert stop.wait(10)
        assert stop.number == number


def test_handlers_and_threads_are_as_before() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}, threading.active_count()
    with stop_on_signals() as stop:
        assert not stop.wait(0.01)
    assert ({number: signal.getsignal(number) for number in SIGNALS}, threading.active_count()) == before
    assert stop.number is None
