"""Waiting for a condition: the only loops of the tests that sleep."""

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
    """Return the first true result. Errors in `despite` count as not yet true.

    Raises TimeoutError with `what` (or its result) after these seconds, from the last error if there was one.
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
    """Wait on a running loop. Raises TimeoutError with `what` after these seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        await asyncio.sleep(0.002)


async def settle(turns: int = TURNS) -> None:
    """Let the loop run everything that is ready, and all that becomes ready by this, without any time.

    Work in threads and on sockets needs `until`.
    """
    for _ in range(turns):
        await asyncio.sleep(0)
