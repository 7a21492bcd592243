"""The order of workers' jobs: quick ones first, and a share of the time for opening files.

Without shares, requests at random offsets would delay steady readers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final

OPENING_SHARE: Final = 0.25
"""The share of the workers' time for opening files while other work waits."""
_MOST_OWED: Final = 1.0
"""After a long opening, at most this many seconds of workers are made up for."""
_RECENT_SECONDS: Final = 1.0


class WorkerTurns:
    """Turns are in order per kind. For one event loop."""

    def __init__(self, most: int, clock: Callable[[], float] = perf_counter) -> None:
        self._free = most
        self._most_opening = max(1, most // 2)
        self._clock = clock
        self._quick: deque[asyncio.Future[None]] = deque()
        self._opening: deque[asyncio.Future[None]] = deque()
        self._owed = 0.0
        """Seconds of workers for steady readers before another file is opened."""
        self._opening_now = 0
        self._quick_at = float("-inf")

    @property
    def is_crowded(self) -> bool:
        return len(self._opening) > 2 * self._most_opening

    @asynccontextmanager
    async def turn(self, *, opens: bool) -> AsyncIterator[None]:
        waiting = asyncio.get_running_loop().create_future()
        (self._opening if opens else self._quick).append(waiting)
        self._hand_out()
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._give_back(opens=opens)
            raise
        began = self._clock()
        try:
            yield
        finally:
            self._count(self._clock() - began, opens=opens)
            self._give_back(opens=opens)

    def _count(self, seconds: float, *, opens: bool) -> None:
        if opens:
            self._owed = min(self._owed + seconds * (1 / OPENING_SHARE - 1), _MOST_OWED)
        else:
            self._owed = max(self._owed - seconds, 0.0)

    def _give_back(self, *, opens: bool) -> None:
        self._free += 1
        self._opening_now -= opens
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free:
            queue = self._next()
            if queue is None:
                return
            waiting = queue.popleft()
            if waiting.done():  # it was given up
                continue
            self._free -= 1
            if queue is self._opening:
                self._opening_now += 1
            else:
                self._quick_at = self._clock()
            waiting.set_result(None)

    def _next(self) -> deque[asyncio.Future[None]] | None:
        if self._quick and (not self._opening or self._owed > 0.0 or not self._may_open()):
            return self._quick
        return self._opening if self._opening and self._may_open() else None

    def _may_open(self) -> bool:
        is_alone = self._clock() - self._quick_at >= _RECENT_SECONDS
        return is_alone or self._opening_now < self._most_opening
