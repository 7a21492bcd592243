"""Writes of a group, one at a time, in the order of requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _QueuePlace:
    passed: asyncio.Future[None]
    ended: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class GroupTurn:
    group_id: str
    before: _QueuePlace | None
    own: _QueuePlace

    async def come(self, *, joins: bool = False) -> None:
        """With `joins`, wait only until earlier work has passed its turn on."""
        if self.before is not None:
            await asyncio.wait({self.before.passed if joins else self.before.ended})


class GroupTurns:
    """For one event loop. Every turn must be ended."""

    def __init__(self) -> None:
        self._last: dict[str, _QueuePlace] = {}

    def take(self, group_id: str) -> GroupTurn:
        loop = asyncio.get_running_loop()
        turn = GroupTurn(group_id, self._last.get(group_id), _QueuePlace(loop.create_future(), loop.create_future()))
        self._last[group_id] = turn.own
        return turn

    def pass_on(self, turn: GroupTurn) -> None:
        """Let the next turn start early, if it joins."""
        before = turn.before
        if before is None or before.passed.done():
            _set(turn.own.passed)
        else:
            before.passed.add_done_callback(lambda _: _set(turn.own.passed))

    def end(self, turn: GroupTurn) -> None:
        """The next turn begins when all earlier ones have ended."""
        self.pass_on(turn)
        if turn.before is None or turn.before.ended.done():
            self._ended(turn)
        else:
            turn.before.ended.add_done_callback(lambda _: self._ended(turn))

    def _ended(self, turn: GroupTurn) -> None:
        _set(turn.own.ended)
        if self._last.get(turn.group_id) is turn.own:
            del self._last[turn.group_id]


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
