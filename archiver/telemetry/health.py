"""Liveness and readiness, with reasons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

MOST_REASONS: Final = 20


class Report(Protocol):
    """A dataclass with at least these fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def live(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """`live`: it makes progress or is idle. `ready`: it has begun, and its last run left nothing out."""

    live: bool
    ready: bool
    reasons: tuple[str, ...]


class Health:
    """A run without progress for `stalled_after` seconds counts as dead."""

    def __init__(self, *, stalled_after: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stalled_after = stalled_after
        self._clock = clock
        self._lock = threading.Lock()
        self._progress = clock()
        self._idle = False
        self._reasons: tuple[str, ...] = ("The job has not begun yet",)

    def progressed(self) -> None:
        with self._lock:
            self._progress = self._clock()
            self._idle = False

    def began(self) -> None:
        self.progressed()
        with self._lock:
            if self._reasons == ("The job has not begun yet",):
                self._reasons = ()

    def ended(self, reasons: Sequence[str]) -> None:
        """`reasons`: why the run left something out, if it did."""
        with self._lock:
            self._idle = True
            self._reasons = tuple(reasons)

    def report(self) -> HealthReport:
        with self._lock:
            silent = self._clock() - self._progress
            live = self._idle or silent < self._stalled_after
            stalled = () if live else (f"No progress for {silent:.0f} s",)
            reasons = (*stalled, *self._reasons)
        more = len(reasons) - MOST_REASONS
        shown = (*reasons[:MOST_REASONS], f"and {more} more") if more > 0 else reasons
        return HealthReport(live=live, ready=live and not self._reasons, reasons=shown)
