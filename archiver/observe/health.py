"""Whether the process lives and can do its work, with the reasons where not, as orchestrators ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MOST_REASONS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """`live`: it moves, or has nothing to do. `ready`: it has begun, and all it is to archive can be archived."""

    live: bool
    ready: bool
    reasons: tuple[str, ...]


class Health:
    """What a job tells of itself. A run that shows no progress for `stalled_after` seconds counts as dead."""

    def __init__(self, *, stalled_after: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stalled_after = stalled_after
        self._clock = clock
        self._lock = threading.Lock()
        self._progress = clock()
        self._idle = False
        self._reasons: tuple[str, ...] = ("The job has not begun yet",)

    def progressed(self) -> None:
        """Something went on."""
        with self._lock:
            self._progress = self._clock()
            self._idle = False

    def began(self) -> None:
        """A run has begun, with topics that can be archived."""
        self.progressed()
        with self._lock:
            if self._reasons == ("The job has not begun yet",):
                self._reasons = ()

    def ended(self, reasons: Sequence[str]) -> None:
        """A run is over; `reasons` are what it could not do."""
        with self._lock:
            self._idle = True
            self._reasons = tuple(reasons)

    def report(self) -> HealthReport:
        """How it is now."""
        with self._lock:
            silent = self._clock() - self._progress
            live = self._idle or silent < self._stalled_after
            stalled = () if live else (f"No progress for {silent:.0f} s",)
            reasons = (*stalled, *self._reasons)
        more = len(reasons) - MOST_REASONS
        shown = (*reasons[:MOST_REASONS], f"and {more} more") if more > 0 else reasons
        return HealthReport(live=live, ready=live and not self._reasons, reasons=shown)
