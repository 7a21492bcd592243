"""When a trickle is archived."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from archiver.ingest.plan.waiting import WaitingSince, WaitLimits

LIMITS = WaitLimits(max_lag=300.0, min_bytes=1_000, look_every=60.0)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def ripe(waiting: WaitingSince, size: float = 10, limits: WaitLimits = LIMITS) -> bool:
    return waiting.is_ripe(0, size=size, limits=limits)


def test_what_nobody_saw_before_is_archived_at_once() -> None:
    waiting = WaitingSince(Clock())
    assert ripe(waiting)
    waiting.saw(0, archived=0, end=5)
    assert ripe(waiting)


def test_enough_is_archived_at_once_and_little_waits() -> None:
    waiting = WaitingSince(Clock())
    waiting.saw(0, archived=5, end=5)
    assert ripe(waiting, size=1_000)
    assert not ripe(waiting, size=999)


def test_trickle_is_archived_before_its_age_limit() -> None:
    clock = Clock()
    waiting = WaitingSince(clock)
    archived, lags, runs = 0, list[float](), 0
    waiting.saw(0, archived=0, end=0)
    for minute in range(1, 121):  # a record half a minute before each look
        clock.now = 60.0 * minute
        waiting.saw(0, archived=archived, end=minute)
        if ripe(waiting, size=10 * (minute - archived)):
            lags.append(clock.now - (60.0 * (archived + 1) - 30.0))
            archived, runs = minute, runs + 1
            waiting.saw(0, archived=archived, end=minute)
    assert max(lags) <= 300.0
    assert runs <= 30, "one file every five minutes at most"


def test_records_during_a_run_wait_from_the_look_before() -> None:
    clock = Clock()
    waiting = WaitingSince(clock)
    waiting.saw(0, archived=0, end=10)
    clock.now = 50.0
    waiting.saw(0, archived=10, end=12)
    clock.now = 240.0
    waiting.saw(0, archived=10, end=15)
    assert not ripe(waiting)
    clock.now = 241.0
    assert ripe(waiting)


@pytest.mark.parametrize("max_lag", [0.0, 60.0])
def test_a_lag_within_the_interval_never_waits(max_lag: float) -> None:
    clock = Clock()
    waiting = WaitingSince(clock)
    waiting.saw(0, archived=5, end=5)
    clock.now = 0.001
    assert ripe(waiting, limits=replace(LIMITS, max_lag=max_lag))
