"""An event loop on a manual clock: timers fire in their order, as soon as nothing else is ready."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")
TURN_S: Final = 1e-6
"""A turn of the loop takes this long, so that a timer that is early by a rounding error is called again later."""


class ManualClock:
    """Seconds that pass only when a test says so. Call it for the time."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class _Skipping(selectors.DefaultSelector):
    """Skips the time until the next timer instead of waiting for it."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout else timeout)
        if timeout is not None and not ready:
            self._clock.now += max(timeout, TURN_S)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__(_Skipping(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.now


def run_in_virtual_time(main: Coroutine[Any, Any, Result], clock: ManualClock) -> Result:
    """Run a coroutine without threads and sockets: an hour of timers takes no time.

    A coroutine that waits for neither a timer nor a task hangs, as on any loop.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)


async def passes(seconds: float) -> None:
    """Let this much of the loop's time pass."""
    await asyncio.sleep(seconds)
