"""Limits on authentication attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import AuthenticationFailed

_AT_ONCE: Final = 4
_MOST_DELAYED: Final = 64
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 1.0
_MOST_DOUBLINGS: Final = 10
_REMEMBERED: Final = 60.0
MOST_USERS: Final = 10_000
_MOST_NAME: Final = 256


@dataclass(slots=True)
class _Address:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    clients: int = 0


@dataclass(slots=True)
class _User:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_DELAYED))
    clients: int = 0
    failures: int = 0
    failed_at: float = float("-inf")


class Attempts:
    """At most four attempts of an address run at a time. A failure is answered up to a second late.

    At most 64 failures of a user at an address wait, which bounds guesses per second. Tokens can't be guessed and have
    no bound. Use it from one event loop.
    """

    def __init__(
        self,
        clock: Callable[[], float] | None = None,
        *,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most_users: int = MOST_USERS,
    ) -> None:
        self._clock = clock or asyncio.get_running_loop().time
        self._wait = wait
        self._most_users = most_users
        self._addresses: dict[str, _Address] = {}
        self._users: dict[tuple[str, str | None], _User] = {}

    @asynccontextmanager
    async def one(self, address: str, user: str | None = None) -> AsyncIterator[None]:
        """AuthenticationFailed is raised after a delay.

        `user`: the claimed name; None if the message has nothing to guess.
        """
        user = None if user is None else user[:_MOST_NAME]
        host = self._addresses.setdefault(address, _Address())
        tried = self._users.setdefault((address, user), _User())
        host.clients += 1
        tried.clients += 1
        try:
            if user is not None:
                await tried.places.acquire()
            try:
                async with host.places:
                    yield
            except AuthenticationFailed:
                await self._wait(self._delay(tried))
                raise
            finally:
                if user is not None:
                    tried.places.release()
        finally:
            host.clients -= 1
            tried.clients -= 1
            if not host.clients:
                self._addresses.pop(address, None)
            self._forget((address, user))

    def _delay(self, tried: _User) -> float:
        now = self._clock()
        tried.failures = 1 if now - tried.failed_at > _REMEMBERED else tried.failures + 1
        tried.failed_at = now
        return float(min(_FIRST_DELAY * 2 ** min(tried.failures - 1, _MOST_DOUBLINGS), _LONGEST_DELAY))

    def _forget(self, last: tuple[str, str | None]) -> None:
        tried = self._users[last]
        if not tried.clients and not tried.failures:
            del self._users[last]
        if len(self._users) <= self._most_users:
            return
        unused = sorted((user.failed_at, key) for key, user in self._users.items() if not user.clients)
        for _, key in unused[: max(1, len(unused) // 2)]:
            del self._users[key]
