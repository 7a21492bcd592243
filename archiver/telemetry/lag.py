"""Derives how long records wait from a job's reads and commits.

Waiting records arrived after the last check that found none, and after the newest archived record; without either, the
time counts from the first check.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Place = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass(slots=True)
class _Partition:
    end: int = 0
    looked: float = 0.0
    caught_up: float | None = None
    newest: float | None = None
    since: float | None = None

    def begin(self) -> None:
        """Begin at the last check at the latest: producers' clocks may be ahead."""
        known = [each for each in (self.caught_up, self.newest) if each is not None]
        self.since = min(self.looked, max(known, default=self.looked))


class Lag:
    """`clock` gives seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._partitions: dict[Place, _Partition] = {}

    def seconds(self, place: Place) -> float:
        """An upper bound of the oldest record's wait; 0 if nothing waits."""
        since = self._partitions[place].since if place in self._partitions else None
        return 0.0 if since is None else max(0.0, self._clock() - since)

    def saw(self, place: Place, *, archived: int, end: int) -> None:
        found = self._partitions.setdefault(place, _Partition())
        found.end, found.looked = end, self._clock()
        if archived >= end:
            found.since, found.caught_up = None, found.looked
        elif found.since is None:
            found.begin()

    def committed(self, place: Place, *, until: int, newest_ms: int | None) -> None:
        found = self._partitions.setdefault(place, _Partition())
        if newest_ms is not None:
            found.newest = max(found.newest or 0.0, newest_ms / 1000)
        if until >= found.end:
            found.since, found.caught_up = None, found.looked or self._clock()
        else:
            found.begin()
