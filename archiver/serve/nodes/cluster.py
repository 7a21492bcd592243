"""The cluster as handlers see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, TypeVar

from archiver.serve.groups import GroupBudget
from archiver.serve.nodes.claims import Claims, GroupStanding, Need
from archiver.serve.nodes.duty import GroupDuty
from archiver.serve.nodes.members import Members, Node, NodeAddress
from archiver.serve.nodes.membership import Beats, Membership, boot_clock
from archiver.serve.nodes.node_store import NodeStore
from archiver.serve.nodes.turns import GroupTurn, GroupTurns
from catalog.registry import GroupClaim
from schema_mapping.errors import ContextError

_Answer = TypeVar("_Answer")

_KEEPING_SECONDS: Final = 10.0
"""How long a node that leaves waits for what is being kept. What isn't by then was never acknowledged."""
_LAGS_FOR: Final = 60.0
"""Seconds after a node went in which its clients may bring offsets that it had seen."""


class NodeCluster:
    """Use it from one event loop."""

    def __init__(
        self,
        cluster_id: str,
        store: NodeStore,
        address: NodeAddress,
        *,
        beats: Beats | None = None,
        let_go: Callable[[str], None] = lambda _: None,
        is_used: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self.cluster_id = cluster_id
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._has_others = False
        self._others_seen_at = float("-inf")
        self._membership = Membership(
            store,
            address,
            beats=beats or Beats(),
            on_change=self._changed,
            clock=clock,
        )
        self._patience = (beats or Beats()).every
        self._claims = Claims(self._membership, store, let_go=let_go, is_used=is_used, patience=self._patience)
        self._turns = GroupTurns()
        self._keeping: set[asyncio.Task[Any]] = set()

    @property
    def own(self) -> Node:
        return self._membership.own

    @property
    def members(self) -> Members:
        """In this node's latest view."""
        return self._membership.members

    @property
    def told(self) -> Members:
        """The last view that all nodes agreed on, which clients see."""
        return self._membership.told

    @property
    def others(self) -> Members | None:
        nodes = tuple(node for node in self.told.nodes if node.node_id != self.own.node_id)
        return Members(number=self.told.number, nodes=nodes) if nodes else None

    @property
    def trouble(self) -> ContextError | None:
        return self._membership.trouble

    @property
    def is_leased(self) -> bool:
        return self._membership.is_leased

    @property
    def settled_for(self) -> float:
        return self._membership.settled_for

    @property
    def groups(self) -> int:
        return self._claims.count

    @property
    def may_lag(self) -> bool:
        """Another node may have shown a newer snapshot. True without a lease."""
        is_recent = self._clock() - self._others_seen_at < _LAGS_FOR
        return self._has_others or is_recent or not self.is_leased

    async def start(self) -> Self:
        """Raises ConfigError if joining can never work."""
        await self._membership.start()
        return self

    async def agree_on(self, groups: Iterable[str]) -> None:
        """Wait at most one heartbeat."""
        published, members = self.told, self.members
        if (
            published != members
            and self.is_leased
            and any(published.coordinator(group_id) != members.coordinator(group_id) for group_id in groups)
        ):
            await self._membership.settled(self._patience)

    async def ended(self) -> None:
        await self._membership.ended()

    async def close(self) -> None:
        """Finish pending commits, hand over the groups, and leave."""
        until = self._loop.time() + _KEEPING_SECONDS
        while self._keeping and (left := until - self._loop.time()) > 0:
            await asyncio.wait(self._keeping, timeout=left)
        if self.is_leased and self.trouble is None:
            with suppress(ContextError):
                await self._claims.release_unused()
        await self._membership.close()

    def standing(self, group_id: str) -> GroupStanding:
        return self._claims.standing(group_id)

    def refused(self, group_id: str, claim: GroupClaim) -> None:
        """Drop a refused claim. Thread-safe."""
        self._loop.call_soon_threadsafe(self._claims.lost, group_id, claim)

    async def coordinating(
        self,
        group_id: str,
        work: Callable[[GroupDuty], Awaitable[_Answer]],
        *,
        is_kept: bool,
        joins: bool = False,
        need: Need = Need.GROUP,
        budget: GroupBudget | None = None,
    ) -> _Answer | GroupStanding:
        """Work is cancelled when the group moves or the request ends, except `is_kept` work.

        That is done in the group's order; with `joins`, it starts when earlier work has passed its turn on. A new group
        counts in `budget`.
        """
        if is_kept:
            turn = self._turns.take(group_id)
            keeping = asyncio.ensure_future(self._kept(turn, work, need, budget, joins=joins))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)
            return await asyncio.shield(keeping)
        claim = await self._claims.claimed(group_id, need, budget)
        ended = self._claims.begin_request(group_id)
        if isinstance(claim, GroupStanding) or ended is None:
            return claim if isinstance(claim, GroupStanding) else GroupStanding.LOADING
        task = asyncio.ensure_future(_awaited(work, GroupDuty(claim)))
        try:
            waits: set[asyncio.Future[Any]] = {task, ended}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return GroupStanding.OTHER
            answer = task.result()
        finally:
            task.cancel()
            self._claims.end_request(group_id, ended)
        standing = self.standing(group_id)
        return answer if standing is GroupStanding.COORDINATOR else standing

    async def release_unused(self, unasked_for: float) -> int:
        return await self._claims.release_unused(unasked_for)

    async def _kept(
        self,
        turn: GroupTurn,
        work: Callable[[GroupDuty], Awaitable[_Answer]],
        need: Need,
        budget: GroupBudget | None,
        *,
        joins: bool,
    ) -> _Answer | GroupStanding:
        group_id = turn.group_id
        try:
            claim = await self._claims.claimed(group_id, need, budget)
            ended = self._claims.begin_request(group_id)
            if isinstance(claim, GroupStanding) or ended is None:
                return claim if isinstance(claim, GroupStanding) else GroupStanding.LOADING
            try:
                await turn.come(joins=joins)
                return await work(GroupDuty(claim, partial(self._turns.pass_on, turn)))
            finally:
                self._claims.end_request(group_id, ended)
        finally:
            self._turns.end(turn)

    def _changed(self) -> None:
        had_others, self._has_others = self._has_others, len(self.members.nodes) > 1
        if had_others:
            self._others_seen_at = self._clock()
        self._claims.review()


async def _awaited(work: Callable[[GroupDuty], Awaitable[_Answer]], duty: GroupDuty) -> _Answer:
    return await work(duty)
