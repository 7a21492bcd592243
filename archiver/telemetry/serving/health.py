"""The health of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

_STALLED_SECONDS: Final = 30.0
_MOST_REASONS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeReport:
    """`degraded` serves the last known state."""

    status: Literal["ok", "degraded", "starting", "stalled"]
    live: bool
    ready: bool
    reasons: tuple[str, ...]


class ServeHealth:
    """The health of a server. Thread-safe."""

    def __init__(
        self, troubles: Callable[[], Iterable[str]] = tuple, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`troubles` lists unavailable dependencies."""
        self._troubles = troubles
        self._clock = clock
        self._turned = clock()
        self._is_ready = False

    def turned(self) -> None:
        """After half a minute without a call the server counts as dead."""
        self._turned = self._clock()

    def ready(self, *, is_ready: bool = True) -> None:
        self._is_ready = is_ready

    def report(self) -> ServeReport:
        silent = self._clock() - self._turned
        if silent > _STALLED_SECONDS:
            return ServeReport(status="stalled", live=False, ready=False, reasons=(f"No turn for {silent:.0f} s",))
        if not self._is_ready:
            return ServeReport(status="starting", live=True, ready=False, reasons=("No clients are taken yet",))
        reasons = tuple(self._troubles())
        more = len(reasons) - _MOST_REASONS
        shown = (*reasons[:_MOST_REASONS], f"and {more} more") if more > 0 else reasons
        return ServeReport(status="degraded" if reasons else "ok", live=True, ready=True, reasons=shown)
