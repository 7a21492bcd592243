"""Health for orchestrators: whether the process lives and can do its work, and if not, why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

MOST_REASONS: Final = 20


class Report(Protocol):
    """How a process is: a dataclass with whether it lives and is ready, and more."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def live(self) -> bool:
        """Whether it needs no restart."""

    @property
    def ready(self) -> bool:
        """Whether it can do its work."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Whether the job is healthy, with the reasons if not.

    `live`: it makes progress, or has nothing to do. `ready`: it has begun, and its last run left nothing out.
    """

    live: bool
    ready: bool
    reasons: tuple[str, ...]


class Health:
    """The health of one job. A run without progress for `stalled_after` seconds counts as dead."""

    def __init__(self, *, stalled_after: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stalled_after = stalled_after
        self._clock = clock
        self._lock = threading.Lock()
        self._progress = clock()
        self._idle = False
        self._reasons: tuple[str, ...] = ("The job has not begun yet",)

    def progressed(self) -> None:
        """Note that the job made progress."""
        with self._lock:
            self._progress = self._clock()
            self._idle = False

    def began(self) -> None:
        """Note that a run has begun and has topics to archive."""
        self.progressed()
        with self._lock:
            if self._reasons == ("The job has not begun yet",):
                self._reasons = ()

    def ended(self, reasons: Sequence[str]) -> None:
        """Note that a run has ended. `reasons` say what it could not archive."""
        with self._lock:
            self._idle = True
            self._reasons = tuple(reasons)

    def report(self) -> HealthReport:
        """Return the health as of now."""
        with self._lock:
            silent = self._clock() - self._progress
            live = self._idle or silent < self._stalled_after
            stalled = () if live else (f"No progress for {silent:.0f} s",)
            reasons = (*stalled, *self._reasons)
        more = len(reasons) - MOST_REASONS
        shown = (*reasons[:MOST_REASONS], f"and {more} more") if more > 0 else reasons
        return HealthReport(live=live, ready=live and not self._reasons, reasons=shown)
