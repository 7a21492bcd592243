"""How long records wait."""

from __future__ import annotations

from archiver.telemetry.lag import Lag

PLACE = ("orders", 0)


class Clock:
    now = 10_000.0

    def __call__(self) -> float:
        return self.now


def test_what_came_since_the_last_look_waits_since_then() -> None:
    clock = Clock()
    lag = Lag(clock)
    assert lag.seconds(PLACE) == 0.0
    lag.saw(PLACE, archived=5, end=5)
    clock.now += 60
    assert lag.seconds(PLACE) == 0.0
    lag.saw(PLACE, archived=5, end=8)
    assert lag.seconds(PLACE) == 60.0, "it may have come right after the look before"
    clock.now += 30
    lag.saw(PLACE, archived=5, end=9)
    assert lag.seconds(PLACE) == 90.0, "it grows while nothing moves"
    lag.committed(PLACE, until=9, newest_ms=None)
    assert lag.seconds(PLACE) == 0.0


def test_a_backlog_is_as_old_as_the_newest_record_before_it() -> None:
    clock = Clock()
    lag = Lag(clock)
    lag.saw(PLACE, archived=0, end=1_000)
    assert lag.seconds(PLACE) == 0.0, "nothing is known of it yet"
    clock.now += 10
    assert lag.seconds(PLACE) == 10.0
    lag.committed(PLACE, until=400, newest_ms=6_000_000)
    assert lag.seconds(PLACE) == 4_010.0
    lag.committed(PLACE, until=800, newest_ms=9_000_000)
    assert lag.seconds(PLACE) == 1_010.0
    lag.committed(PLACE, until=1_000, newest_ms=9_900_000)
    assert lag.seconds(PLACE) == 0.0
    clock.now += 50
    lag.saw(PLACE, archived=1_000, end=1_001)
    assert lag.seconds(PLACE) == 60.0, "it came after the look that saw the whole backlog"


def test_a_producer_whose_clock_is_ahead_hides_nothing() -> None:
    clock = Clock()
    lag = Lag(clock)
    lag.saw(PLACE, archived=0, end=10)
    lag.committed(PLACE, until=5, newest_ms=99_000_000)
    clock.now += 20
    assert lag.seconds(PLACE) == 20.0
