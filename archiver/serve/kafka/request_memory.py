"""Memory for large requests, shared by all connections: a request waits until there is room for more of it.

A principal, or an address that has not logged in, gets only a share of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

SMALL: Final = 64 << 10
"""Requests of at most this many bytes never wait: the number of connections is bounded."""
_SHARE: Final = 4
"""One payer gets a quarter of the memory."""


@dataclass(slots=True, eq=False)
class _Holders:
    """The requests that hold memory, the oldest first, with their bytes."""

    requests: dict[HeldMemory, None] = field(default_factory=dict)
    bytes: int = 0

    def may_grow(self, held: HeldMemory, size: int, most: int) -> bool:
        """Whether there is room. The oldest never waits: else all could wait for each other half read."""
        return self.bytes + size <= most or next(iter(self.requests)) is held


class HeldMemory:
    """The room that one request has. It grows as its bytes come: what was only announced takes none."""

    def __init__(self, memory: RequestMemory, payer: str) -> None:
        self._memory = memory
        self.payer = payer
        self.bytes = 0

    async def grow(self, size: int) -> None:
        """Wait until there is room for this many bytes more."""
        await self._memory.room(self, size)


class RequestMemory:
    """A number of bytes for requests. Use it from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._all = _Holders()
        self._payers: dict[str, _Holders] = {}
        self._changed: asyncio.Event | None = None

    @property
    def bytes(self) -> int:
        """How much is held at the moment."""
        return self._all.bytes

    @contextmanager
    def hold(self, payer: str = "") -> Iterator[HeldMemory]:
        """Room for a request of a payer, which is given back at the end of the block."""
        request = HeldMemory(self, payer)
        try:
            yield request
        finally:
            self.free(request)

    async def room(self, held: HeldMemory, size: int) -> None:
        """Wait until a request may grow."""
        payer = self._payers.setdefault(held.payer, _Holders())
        for holders in (self._all, payer):
            holders.requests.setdefault(held)
        while not (self._all.may_grow(held, size, self._most) and payer.may_grow(held, size, self._most // _SHARE)):
            self._changed = self._changed or asyncio.Event()
            await self._changed.wait()
        held.bytes += size
        self._all.bytes += size
        payer.bytes += size

    def free(self, held: HeldMemory) -> None:
        """Free the room of a request, if it has any, or its place among those that wait."""
        if held not in self._all.requests:
            return
        payer = self._payers[held.payer]
        for holders in (self._all, payer):
            del holders.requests[held]
            holders.bytes -= held.bytes
        if not payer.requests:
            del self._payers[held.payer]
        if self._changed is not None:
            self._changed.set()
            self._changed = None
