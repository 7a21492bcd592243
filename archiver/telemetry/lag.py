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
        moments = [moment for moment in (self.caught_up, self.newest) if moment is not None]
        self.since = min(self.looked, max(moments, default=self.looked))


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
        partition = self._partitions.setdefault(place, _Partition())
        partition.end, partition.looked = end, self._clock()
        if archived >= end:
            partition.since, partition.caught_up = None, partition.looked
        elif partition.since is None:
            partition.begin()

    def committed(self, place: Place, *, until: int, newest_ms: int | None) -> None:
        partition = self._partitions.setdefault(place, _Partition())
        if newest_ms is not None:
            partition.newest = max(partition.newest or 0.0, newest_ms / 1000)
        if until >= partition.end:
            partition.since, partition.caught_up = None, partition.looked or self._clock()
        else:
            partition.begin()
