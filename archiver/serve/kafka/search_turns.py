"""Turns for searches in tables: by time, and for the ends of leader epochs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

_Found = TypeVar("_Found")

_AT_ONCE: Final = 3
"""Fewer than the threads for lookups: tables are refreshed beside any number of searches."""


class SearchTurns:
    """Payers take turns. Use it from one event loop."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._free = at_once
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(self, payer: str, search: Coroutine[Any, Any, _Found]) -> _Found:
        """A search whose client is gone keeps its turn until its thread is free."""
        try:
            await self._turn(payer)
        except BaseException:
            search.close()
            raise
        task = asyncio.get_running_loop().create_task(search)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def _turn(self, payer: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(payer, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._hand_on()
            raise

    def _ended(self, search: asyncio.Task[Any]) -> None:
        if not search.cancelled():
            search.exception()  # its client may be gone
        self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            payer, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[payer] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
