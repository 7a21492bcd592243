"""Memory for large requests, shared by all connections: who sends one waits until there is room for more of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SMALL: Final = 64 << 10
"""Requests of at most so many bytes never wait: connections are bounded."""


class Held:
    """The room that one request has. It grows as its bytes come: what was only announced takes none."""

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self.bytes = 0

    async def grow(self, size: int) -> None:
        """Wait until there is room for so many bytes more."""
        await self._memory.room(self, size)


class RequestMemory:
    """So many bytes of requests at a time. Use it from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held: dict[Held, None] = {}
        self._changed = asyncio.Event()

    @property
    def bytes(self) -> int:
        """How much is held at the moment."""
        return sum(each.bytes for each in self._held)

    @contextmanager
    def hold(self) -> Iterator[Held]:
        """Room for a request, which is given back at the end of the block."""
        held = Held(self)
        try:
            yield held
        finally:
            self._held.pop(held, None)
            self._wake()

    async def room(self, held: Held, size: int) -> None:
        """Wait until a request may grow. The oldest one never waits: else all could wait for each other half read."""
        self._held.setdefault(held)
        while next(iter(self._held)) is not held and self.bytes + size > self._most:
            await self._changed.wait()
        held.bytes += size

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
