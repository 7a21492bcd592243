"""A clock that stops while the loop is blocked or the server may not answer: no session expires then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_PULSE: Final = 0.25
_LATE: Final = 0.25
"""A pulse this many seconds late means that the loop was blocked."""


class HeardTime:
    """Seconds in which members were heard, for one event loop."""

    def __init__(self, hears: Callable[[], bool] = lambda: True) -> None:
        self._hears = hears
        self._deaf = 0.0
        self._last = float("-inf")
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._due is None:
            self._listen_on(loop)
        elif now - self._due > _LATE:  # the pulse itself may come only after this question
            self._pulse()
        self._last = max(self._last, now - self._deaf)  # what is found out with the next pulse doesn't take it back
        return self._last

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._due = None

    def _pulse(self) -> None:
        assert self._due is not None
        loop = asyncio.get_running_loop()
        late = loop.time() - self._due
        if not self._hears():
            self._deaf += late + _PULSE
        elif late > _LATE:
            self._deaf += late
        self._listen_on(loop)

    def _listen_on(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = loop.time() + _PULSE
        self._timer = loop.call_at(self._due, self._pulse)
