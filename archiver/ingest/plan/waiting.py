"""Since when a partition's records wait to be archived, so that small trickles don't become small files for ever.

The job's own clock decides, never the producers': what lies behind a log end that was seen at a time came after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """How long a topic's partitions may wait for company, in seconds and bytes of the log.

    `look_every` is when the job looks again: what would be too late then is not left waiting.
    """

    max_lag: float
    min_bytes: int
    look_every: float


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    end: int


class Waiting:
    """What the job saw of one topic's partitions. `clock` counts seconds."""

    __slots__ = ("_all_archived_at", "_clock", "_last")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[int, _Look] = {}
        self._all_archived_at: dict[int, float] = {}

    def look(self, partition: int, *, archived: int, end: int) -> None:
        """Note that a partition is archived up to `archived` and that its log ends at `end` now."""
        now = _Look(self._clock(), end)
        for look in (self._last.get(partition), now):
            if look is not None and archived >= look.end:
                self._all_archived_at[partition] = look.at
        self._last[partition] = now

    def is_ripe(self, partition: int, *, size: float, limits: WaitLimits) -> bool:
        """Whether what waits, about `size` bytes, is to be archived now; yes where nobody knows since when."""
        since = self._all_archived_at.get(partition)
        if since is None or size >= limits.min_bytes:
            return True
        return self._clock() - since + limits.look_every > limits.max_lag
