"""Groups that this node coordinates.

A group never has two coordinators: a view is settled before groups are claimed, a node without its lease answers
nothing, and the registry checks the claim's epoch in each commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from archiver.serve.groups import GroupBudget
from archiver.serve.nodes.membership import Membership
from archiver.serve.nodes.node_store import NodeStore
from catalog.registry import ClaimOutcome, GroupClaim
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_MOST_CLAIMS: Final = 50_000
_RELEASED_AT_ONCE: Final = 1000
_A_MOMENT: Final = 1.0
_CLAIMS_AT_ONCE: Final = 2
"""Fewer than the store has connections: heartbeats continue while many groups are taken over."""


class GroupStanding(Enum):
    """This node's relation to a group."""

    COORDINATOR = "coordinator"
    OTHER = "other"
    """Another node coordinates it."""
    LOADING = "loading"
    """This node will coordinate it once the other nodes have released it."""
    UNKNOWN = "unknown"
    """The registry is unavailable."""
    UNUSED = "unused"
    """This node would coordinate it, but the group has neither members nor offsets."""
    OVER_BUDGET = "over-budget"
    """This node would coordinate it, but the client's principal has as many groups here as it may have."""


class Need(Enum):
    """A request's need of a group."""

    MEMBERS = "members"
    """Only the node that has claimed the group knows them."""
    OFFSETS = "offsets"
    GROUP = "group"
    """To join it, or to commit its first offsets."""


@dataclass(slots=True)
class _HeldClaim:
    claim: GroupClaim
    owner: str
    asked_at: float
    asking: int = 0
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Claims:
    """Use it from one event loop, except `lost`."""

    def __init__(
        self,
        membership: Membership,
        store: NodeStore,
        *,
        let_go: Callable[[str], None],
        is_used: Callable[[str], bool],
        patience: float,
        most: int = _MOST_CLAIMS,
    ) -> None:
        """`let_go` drops a group's members; `is_used`: it has some. `patience`: seconds to wait for a settled view."""
        self._membership = membership
        self._store = store
        self._let_go = let_go
        self._is_used = is_used
        self._patience = patience
        self._most = most
        self._held: dict[str, _HeldClaim] = {}
        self._owned: dict[str, set[str]] = {}
        self._claiming: dict[str, asyncio.Task[GroupStanding]] = {}
        self._slots = asyncio.Semaphore(_CLAIMS_AT_ONCE)
        self._leaving: dict[str, asyncio.Task[None]] = {}

    @property
    def count(self) -> int:
        return len(self._held)

    def standing(self, group_id: str) -> GroupStanding:
        if not self._membership.is_leased:
            return GroupStanding.UNKNOWN
        members = self._membership.members
        if members.coordinator(group_id).node_id != self._membership.own.node_id:
            return GroupStanding.OTHER
        return GroupStanding.COORDINATOR if group_id in self._held or members.is_settled else GroupStanding.LOADING

    async def claimed(
        self, group_id: str, need: Need = Need.GROUP, budget: GroupBudget | None = None
    ) -> GroupClaim | GroupStanding:
        """A new group counts in `budget` until it is released."""
        standing = self.standing(group_id)
        if standing is GroupStanding.LOADING:
            await self._membership.settled(self._patience)
        if group_id in self._leaving:
            await asyncio.wait({self._leaving[group_id]})
        standing = self.standing(group_id)
        if standing is GroupStanding.COORDINATOR and group_id not in self._held:
            if need is Need.MEMBERS:
                return GroupStanding.UNUSED
            standing = await self._claimed_once(group_id, budget, makes=need is Need.GROUP)
        if standing is not GroupStanding.COORDINATOR:
            return standing
        lease = self._held.get(group_id)
        return GroupStanding.LOADING if lease is None else lease.claim

    def begin_request(self, group_id: str) -> asyncio.Future[None] | None:
        """The future is done when this node stops coordinating the group."""
        lease = self._held.get(group_id)
        if lease is None:
            return None
        lease.asking += 1
        return lease.ended

    def end_request(self, group_id: str, ended: asyncio.Future[None]) -> None:
        lease = self._held.get(group_id)
        if lease is not None and lease.ended is ended:
            lease.asking -= 1
            lease.asked_at = self._now()

    async def release_unused(self, unasked_for: float = 0.0, owner: str | None = None) -> int:
        """`unasked_for`: seconds without requests. `owner`: only groups that it began.

        The registry keeps claims on groups with offsets.
        """
        since = self._now() - unasked_for
        unused = [
            group_id
            for group_id, lease in self._owned_by(owner)
            if not lease.asking and lease.asked_at <= since and not self._is_used(group_id)
        ]
        for start in range(0, len(unused), _RELEASED_AT_ONCE):
            some = [group_id for group_id in unused[start : start + _RELEASED_AT_ONCE] if self._may_leave(group_id)]
            task = asyncio.get_running_loop().create_task(self._release(some))
            self._leaving.update(dict.fromkeys(some, task))
            await asyncio.shield(task)
        return len(unused)

    def review(self) -> None:
        for group_id in list(self._held):
            members = self._membership.members
            is_own = members.coordinator(group_id).node_id == self._membership.own.node_id
            if not self._membership.is_joined or not is_own:
                self._drop(group_id)

    def lost(self, group_id: str, claim: GroupClaim) -> None:
        """The next request may claim the group again."""
        lease = self._held.get(group_id)
        if lease is not None and lease.claim == claim:
            self._drop(group_id)

    def _owned_by(self, owner: str | None) -> Iterable[tuple[str, _HeldClaim]]:
        if owner is None:
            return self._held.items()
        return [(group_id, self._held[group_id]) for group_id in self._owned.get(owner, ())]

    async def _claimed_once(self, group_id: str, budget: GroupBudget | None, *, makes: bool) -> GroupStanding:
        task = self._claiming.get(group_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._claim(group_id, budget, makes=makes))
            self._claiming[group_id] = task
            task.add_done_callback(lambda _: self._claiming.pop(group_id))
        standing = await asyncio.shield(task)
        if standing is GroupStanding.UNUSED and makes:  # who asked first began no group
            return await self._claimed_once(group_id, budget, makes=True)
        return standing

    async def _claim(self, group_id: str, budget: GroupBudget | None, *, makes: bool) -> GroupStanding:
        try:
            refused = await self._no_room(group_id, budget if makes else None)
            if refused is not None:
                return refused
            async with self._slots:
                standing = self.standing(group_id)
                if standing is not GroupStanding.COORDINATOR:  # in the view of this moment, which the claim would be of
                    return standing
                node_id, epoch = self._membership.own.node_id, self._membership.members.number
                claim = await asyncio.get_running_loop().run_in_executor(
                    None, lambda: self._store.claim(group_id, node_id=node_id, epoch=epoch, makes=makes)
                )
        except ContextError as error:
            _LOG.warning("group %s can't be coordinated", group_id, exc_info=error)
            return GroupStanding.UNKNOWN
        standing = self.standing(group_id)
        if standing is not GroupStanding.COORDINATOR:
            return standing
        if not isinstance(claim, GroupClaim):
            return GroupStanding.UNUSED if claim is ClaimOutcome.UNUSED else GroupStanding.OTHER
        owner = "" if budget is None else budget.owner
        self._held[group_id] = _HeldClaim(claim, owner, self._now())
        self._owned.setdefault(owner, set()).add(group_id)
        return standing

    async def _no_room(self, group_id: str, budget: GroupBudget | None) -> GroupStanding | None:
        is_over = budget is not None and len(self._owned.get(budget.owner, ())) >= budget.groups
        if budget is not None and is_over and not await self.release_unused(_A_MOMENT, budget.owner):
            return GroupStanding.OVER_BUDGET
        if len(self._held) >= self._most and not await self.release_unused(_A_MOMENT):
            _LOG.warning("%d groups are coordinated here: group %s has to wait", self._most, group_id)
            return GroupStanding.UNKNOWN
        return None

    def _may_leave(self, group_id: str) -> bool:
        lease = self._held.get(group_id)
        return lease is not None and not lease.asking and group_id not in self._leaving and not self._is_used(group_id)

    async def _release(self, groups: list[str]) -> None:
        try:
            node_id = self._membership.own.node_id
            await asyncio.get_running_loop().run_in_executor(None, lambda: self._store.release(groups, node_id=node_id))
            for group_id in groups:
                self._drop(group_id)
        finally:
            for group_id in groups:
                del self._leaving[group_id]

    def _drop(self, group_id: str) -> None:
        lease = self._held.pop(group_id, None)
        if lease is not None:
            self._owned[lease.owner].discard(group_id)
            if not self._owned[lease.owner]:
                del self._owned[lease.owner]
            self._let_go(group_id)
            if not lease.ended.done():
                lease.ended.set_result(None)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
