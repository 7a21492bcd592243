"""Attempts to show who one is, by address: a few at a time, and who fails holds its place for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import AuthenticationFailed

_AT_ONCE: Final = 4
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 1.0
_MOST_DOUBLINGS: Final = 10
_REMEMBERED: Final = 60.0
_MOST_ADDRESSES: Final = 10_000


@dataclass(slots=True)
class _Address:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    clients: int = 0
    failures: int = 0
    failed_at: float = float("-inf")


class Attempts:
    """At most four attempts of an address at a time. A failure is told after a delay that doubles up to a second.

    So nobody guesses more than four passwords a second from one address, or takes all threads that hash them, and a
    client with a wrong password doesn't keep others behind its address out. Use it from one event loop.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or asyncio.get_running_loop().time
        self._known: dict[str, _Address] = {}

    @asynccontextmanager
    async def one(self, address: str) -> AsyncIterator[None]:
        """Wait for a place and hold it for the block; longer if that ends with AuthenticationFailed."""
        known = self._known.setdefault(address, _Address())
        known.clients += 1
        try:
            async with known.places:
                try:
                    yield
                except AuthenticationFailed:
                    await asyncio.sleep(self._delay(known))
                    raise
        finally:
            known.clients -= 1
            self._forget()

    def _delay(self, known: _Address) -> float:
        now = self._clock()
        known.failures = 1 if now - known.failed_at > _REMEMBERED else known.failures + 1
        known.failed_at = now
        return float(min(_FIRST_DELAY * 2 ** min(known.failures - 1, _MOST_DOUBLINGS), _LONGEST_DELAY))

    def _forget(self) -> None:
        """Forget the addresses without clients, if there are many: those that failed long ago first."""
        if len(self._known) <= _MOST_ADDRESSES:
            return
        unused = sorted((each.failed_at, name) for name, each in self._known.items() if not each.clients)
        for _, name in unused[: max(1, len(unused) // 2)]:
            del self._known[name]
