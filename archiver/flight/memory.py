"""Bound the bytes of batches that are not durable yet."""

from __future__ import annotations

import asyncio
from typing import Final

from archiver.errors import IntakeFull

_PATIENCE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0


class MessageMemory:
    """For one event loop. A single batch is always accepted."""

    def __init__(self, most: int, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._most = most
        self._patience = patience
        self._freed = asyncio.Event()
        self.used = 0

    async def take(self, size: int, *, held: int = 0) -> None:
        """Wait for room. Raises IntakeFull. The batch has `held` already."""
        try:
            async with asyncio.timeout(self._patience):
                while self.used > held and self.used + size > self._most:
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            raise IntakeFull(
                "the server has as many unacknowledged rows as `flight.memory` allows",
                retry_seconds=_RETRY_SECONDS,
            ) from None
        self.used += size

    def give_back(self, size: int) -> None:
        self.used -= size
        self._freed.set()
