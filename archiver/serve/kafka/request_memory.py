"""Memory for large requests, shared by all connections, with a limit per payer."""

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
    requests: dict[HeldMemory, None] = field(default_factory=dict)
    bytes: int = 0
    waiting: dict[HeldMemory, tuple[int, asyncio.Future[None]]] = field(default_factory=dict)
    """How much the waiting requests of a payer need, the longest waiting first."""

    def may_grow(self, held: HeldMemory, size: int, most: int) -> bool:
        """The oldest never waits, so half-read requests don't deadlock."""
        return self.bytes + size <= most or next(iter(self.requests)) is held


class HeldMemory:
    """A request's memory. It grows as bytes arrive, not by the announced size."""

    def __init__(self, memory: RequestMemory, payer: str) -> None:
        self._memory = memory
        self.payer = payer
        self.bytes = 0

    async def grow(self, size: int) -> None:
        await self._memory.room(self, size)


class RequestMemory:
    """Use it from one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._all = _Holders()
        self._payers: dict[str, _Holders] = {}
        self._waiting: dict[str, _Holders] = {}

    @property
    def bytes(self) -> int:
        return self._all.bytes

    @contextmanager
    def hold(self, payer: str = "") -> Iterator[HeldMemory]:
        request = HeldMemory(self, payer)
        try:
            yield request
        finally:
            self.free(request)

    async def room(self, held: HeldMemory, size: int) -> None:
        payer = self._payers.setdefault(held.payer, _Holders())
        for holders in (self._all, payer):
            holders.requests.setdefault(held)
        if self._has_grown(payer, held, size):
            return
        grown = asyncio.get_running_loop().create_future()
        payer.waiting[held] = size, grown
        self._waiting[held.payer] = payer
        try:
            await grown
        finally:
            payer.waiting.pop(held, None)
            if not payer.waiting:
                self._waiting.pop(held.payer, None)

    def free(self, held: HeldMemory) -> None:
        if held not in self._all.requests:
            return
        payer = self._payers[held.payer]
        for holders in (self._all, payer):
            del holders.requests[held]
            holders.bytes -= held.bytes
            holders.waiting.pop(held, None)
        if not payer.requests:
            del self._payers[held.payer]
        for waiting in list(self._waiting.values()):
            while self._has_let_grow(waiting):
                pass

    def _has_grown(self, payer: _Holders, held: HeldMemory, size: int) -> bool:
        if not (self._all.may_grow(held, size, self._most) and payer.may_grow(held, size, self._most // _SHARE)):
            return False
        held.bytes += size
        self._all.bytes += size
        payer.bytes += size
        return True

    def _has_let_grow(self, payer: _Holders) -> bool:
        """Waking all waiting requests would take long."""
        for request in (next(iter(payer.waiting), None), next(iter(payer.requests), None)):
            if request is None or request not in payer.waiting:
                continue
            size, grown = payer.waiting[request]
            if grown.done() or self._has_grown(payer, request, size):
                del payer.waiting[request]
                if not grown.done():
                    grown.set_result(None)
                return True
        return False
