"""Decides whether a partition's few new records wait for a later run, so that a slow topic doesn't get tiny files.

Only the job's own clock counts, never the producers' timestamps: records after a log end came after the job saw that
log end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitLimits:
    """How long a partition's records may wait for more records, in seconds (`max_lag`) and bytes of the log.

    `look_every` are the seconds until the job's next run: records that would be late by then don't wait.
    """

    max_lag: float
    min_bytes: int
    look_every: float


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    end: int


class WaitingSince:
    """Remembers since when records of a topic's partitions wait. `clock` counts seconds."""

    __slots__ = ("_all_archived_at", "_clock", "_last")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[int, _Look] = {}
        self._all_archived_at: dict[int, float] = {}

    def saw(self, partition: int, *, archived: int, end: int) -> None:
        """Take how a partition stands now: it is archived up to `archived`, and its log ends at `end`."""
        now = _Look(self._clock(), end)
        for look in (self._last.get(partition), now):
            if look is not None and archived >= look.end:
                self._all_archived_at[partition] = look.at
        self._last[partition] = now

    def is_ripe(self, partition: int, *, size: float, limits: WaitLimits) -> bool:
        """Whether to archive the waiting records (about `size` bytes) now; yes if their waiting time isn't known."""
        since = self._all_archived_at.get(partition)
        if since is None or size >= limits.min_bytes:
            return True
        return self._clock() - since + limits.look_every > limits.max_lag
