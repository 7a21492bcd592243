"""Memory for large requests, shared by all connections: who sends one waits until there is room for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

SMALL: Final = 64 << 10
"""Requests of at most so many bytes never wait: connections are bounded."""


class RequestMemory:
    """So many bytes of requests at a time. Use it from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0
        self._room = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Hold room for a request as long as the block lasts. A request larger than all of it is let in alone."""
        if size <= SMALL:
            yield
            return
        async with self._room:
            await self._room.wait_for(lambda: not self._held or self._held + size <= self._most)
            self._held += size
        try:
            yield
        finally:
            self._held -= size
            async with self._room:
                self._room.notify_all()
