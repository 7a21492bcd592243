"""Work on one group, one at a time, in the order in which it was asked for: an older commit never follows a later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """A place in a group's queue."""

    group_id: str
    before: asyncio.Future[None] | None
    ended: asyncio.Future[None]

    async def come(self) -> None:
        """Wait until all work before is done."""
        if self.before is not None:
            await asyncio.wait({self.before})


class Turns:
    """The queues of groups. Use it from one event loop. A group without work has none."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Future[None]] = {}

    def take(self, group_id: str) -> Turn:
        """Be the last in a group's queue. Each turn has to be ended."""
        turn = Turn(group_id, self._last.get(group_id), asyncio.get_running_loop().create_future())
        self._last[group_id] = turn.ended
        return turn

    def end(self, turn: Turn) -> None:
        """Let the next one come, once all before are done too."""
        if turn.before is None or turn.before.done():
            self._ended(turn)
        else:
            turn.before.add_done_callback(lambda _: self._ended(turn))

    def _ended(self, turn: Turn) -> None:
        turn.ended.set_result(None)
        if self._last.get(turn.group_id) is turn.ended:
            del self._last[turn.group_id]
