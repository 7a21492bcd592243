"""An event loop on a manual clock: timers fire in order, once nothing else is ready."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")
TURN_S: Final = 1e-6
"""A turn of the loop takes this long, so that a timer that is early by a rounding error is called again later."""


class ManualClock:
    """Seconds that pass only by the test."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class _Skipping(selectors.DefaultSelector):
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
    """Run without threads and sockets. A coroutine that waits for neither timer nor task hangs."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)


async def passes(seconds: float) -> None:
    await asyncio.sleep(seconds)
