"""Let few new records wait for a later run, to avoid tiny files. Uses only the job's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """Seconds and log bytes. The next run is in `look_every` seconds."""

    max_lag: float
    min_bytes: int
    look_every: float


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    end: int


class WaitingSince:
    __slots__ = ("_all_archived_at", "_clock", "_last")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[int, _Look] = {}
        self._all_archived_at: dict[int, float] = {}

    def saw(self, partition: int, *, archived: int, end: int) -> None:
        now = _Look(self._clock(), end)
        for look in (self._last.get(partition), now):
            if look is not None and archived >= look.end:
                self._all_archived_at[partition] = look.at
        self._last[partition] = now

    def is_ripe(self, partition: int, *, size: float, limits: WaitLimits) -> bool:
        """True if the waiting time is unknown."""
        since = self._all_archived_at.get(partition)
        if since is None or size >= limits.min_bytes:
            return True
        return self._clock() - since + limits.look_every > limits.max_lag
