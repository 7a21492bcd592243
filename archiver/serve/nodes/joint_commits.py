"""Waiting commits of a group share a transaction, in their order.

Otherwise a large group's commits would delay its heartbeats. If the sum exceeds a budget, they are stored one by one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from archiver.serve.groups import CommittedOffsets
from archiver.serve.nodes.duty import GroupDuty
from catalog.errors import OffsetBudgetReached
from catalog.registry import GroupClaim, GroupOffset

Keep: TypeAlias = Callable[[str, CommittedOffsets], Awaitable[None]]
"""Keeps offsets of a group under one claim; they are safe when it returns."""

_MOST_TOGETHER: Final = 10_000


@dataclass(frozen=True, slots=True)
class _CommitPart:
    offsets: CommittedOffsets
    kept: asyncio.Future[None]


@dataclass(slots=True)
class _Batch:
    claim: GroupClaim | None
    owner: str
    keep: Keep
    parts: list[_CommitPart] = field(default_factory=list)
    offsets: dict[tuple[str, int], GroupOffset] = field(default_factory=dict)

    def joins(self, claim: GroupClaim | None, owner: str, offsets: CommittedOffsets) -> bool:
        is_same = self.claim == claim and self.owner == owner
        return is_same and len(self.offsets) + len(offsets) <= _MOST_TOGETHER


class JointCommits:
    """Use it from one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[_Batch]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}

    async def commit(
        self,
        keep: Keep,
        group_id: str,
        offsets: CommittedOffsets,
        *,
        owner: str = "",
        duty: GroupDuty | None = None,
    ) -> None:
        """Store with the owner's waiting commits, after earlier ones. Raises the errors of `keep`.

        `keep` uses the claim of `duty`.
        """
        part = self._joined(_Batch(None if duty is None else duty.claim, owner, keep), group_id, offsets)
        if group_id not in self._keeping:
            self._keeping[group_id] = asyncio.get_running_loop().create_task(self._keep(group_id))
        if duty is not None:
            duty.pass_on()
        await asyncio.shield(part.kept)

    def _joined(self, batch: _Batch, group_id: str, offsets: CommittedOffsets) -> _CommitPart:
        waiting = self._waiting.setdefault(group_id, deque())
        if not waiting or not waiting[-1].joins(batch.claim, batch.owner, offsets):
            waiting.append(batch)
        part = _CommitPart(offsets, asyncio.get_running_loop().create_future())
        part.kept.add_done_callback(_look_at)  # the request may be gone
        waiting[-1].parts.append(part)
        waiting[-1].offsets.update(offsets)
        return part

    async def _keep(self, group_id: str) -> None:
        waiting = self._waiting[group_id]
        try:
            while waiting:
                batch = waiting.popleft()
                error = await self._kept(batch, group_id, batch.offsets)
                if isinstance(error, OffsetBudgetReached) and len(batch.parts) > 1:
                    for part in batch.parts:
                        _set(part, await self._kept(batch, group_id, part.offsets))
                else:
                    for part in batch.parts:
                        _set(part, error)
        finally:
            for batch in waiting:  # none, unless this was cancelled
                _cancel(batch.parts)
            del self._waiting[group_id], self._keeping[group_id]

    @staticmethod
    async def _kept(batch: _Batch, group_id: str, offsets: CommittedOffsets) -> Exception | None:
        try:
            await batch.keep(group_id, offsets)
        except Exception as error:  # noqa: BLE001 - raised for each waiting request
            return error
        except BaseException:
            _cancel(batch.parts)
            raise
        return None


def _set(part: _CommitPart, error: Exception | None) -> None:
    if part.kept.done():
        return
    if error is None:
        part.kept.set_result(None)
    else:
        part.kept.set_exception(error)


def _cancel(parts: Iterable[_CommitPart]) -> None:
    for part in parts:
        part.kept.cancel()


def _look_at(done: asyncio.Future[None]) -> None:
    """Keep asyncio from logging the error."""
    if not done.cancelled():
        done.exception()
