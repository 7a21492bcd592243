"""Waits for conditions: the tests' only loops that sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")
TURNS: Final = 50


def eventually(
    holds: Callable[[], Result],
    what: str | Callable[[], str] = "a condition holds",
    *,
    seconds: float = 45.0,
    every: float = 0.02,
    despite: tuple[type[Exception], ...] = (),
) -> Result:
    """Return the first true result. Raises TimeoutError with `what` after these seconds.

    Errors in `despite` count as not yet true.
    """
    deadline = time.monotonic() + seconds
    while True:
        error = None
        try:
            if result := holds():
                return result
        except despite as failed:
            error = failed
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what() if callable(what) else what}") from error
        time.sleep(every)


def comes_true(holds: Callable[[], object], seconds: float, *, every: float = 0.02) -> bool:
    try:
        eventually(holds, seconds=seconds, every=every)
    except TimeoutError:
        return False
    return True


async def until(holds: Callable[[], object], what: str = "a condition holds", *, seconds: float = 30.0) -> None:
    """Raises TimeoutError with `what`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        await asyncio.sleep(0.002)


async def settle(turns: int = TURNS) -> None:
    """Run everything that is or becomes ready, without any time.

    Threads and sockets need `until`.
    """
    for _ in range(turns):
        await asyncio.sleep(0)
