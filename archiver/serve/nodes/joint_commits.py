"""Commits of one group that wait for each other are kept together, in one transaction, in the order in which they came.

Members commit at about the same time, and each transaction takes the database as long as one commit does. One after the
other, those of a large group would take so long that the heartbeats behind them come too late.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from archiver.serve.groups import CommittedOffsets
from archiver.serve.nodes.fenced_offsets import CLAIM
from archiver.serve.nodes.turns import PASS_ON
from catalog.registry import GroupClaim, GroupOffset

Keep: TypeAlias = Callable[[str, CommittedOffsets], Awaitable[None]]
"""Keeps offsets of a group under the claim at hand; they are safe when it returns."""

_MOST_TOGETHER: Final = 10_000


@dataclass(slots=True)
class _Batch:
    claim: GroupClaim | None
    kept: asyncio.Future[None]
    offsets: dict[tuple[str, int], GroupOffset] = field(default_factory=dict)


class JointCommits:
    """The commits of all groups. Use it from one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[_Batch]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}

    async def commit(self, keep: Keep, group_id: str, offsets: CommittedOffsets) -> None:
        """Keep offsets, after those that were asked for before, with those that wait. Raises what `keep` does."""
        batch = self._joined(group_id, offsets)
        if group_id not in self._keeping:
            self._keeping[group_id] = asyncio.get_running_loop().create_task(self._keep(keep, group_id))
        PASS_ON.get()()
        await asyncio.shield(batch.kept)

    def _joined(self, group_id: str, offsets: CommittedOffsets) -> _Batch:
        claim = CLAIM.get()
        waiting = self._waiting.setdefault(group_id, deque())
        if not waiting or waiting[-1].claim != claim or len(waiting[-1].offsets) + len(offsets) > _MOST_TOGETHER:
            batch = _Batch(claim, asyncio.get_running_loop().create_future())
            batch.kept.add_done_callback(_look_at)  # nobody may be there any more to hear of it
            waiting.append(batch)
        waiting[-1].offsets.update(offsets)
        return waiting[-1]

    async def _keep(self, keep: Keep, group_id: str) -> None:
        waiting = self._waiting[group_id]
        try:
            while waiting:
                batch = waiting.popleft()
                CLAIM.set(batch.claim)  # in this task's own context
                try:
                    await keep(group_id, batch.offsets)
                except Exception as error:  # noqa: BLE001 - each that waits is told
                    batch.kept.set_exception(error)
                except BaseException:
                    batch.kept.cancel()
                    raise
                else:
                    batch.kept.set_result(None)
        finally:
            for left in waiting:  # none, unless this was cancelled
                left.kept.cancel()
            del self._waiting[group_id], self._keeping[group_id]


def _look_at(done: asyncio.Future[None]) -> None:
    """Keep asyncio from logging an error that nobody was there to hear of."""
    if not done.cancelled():
        done.exception()
