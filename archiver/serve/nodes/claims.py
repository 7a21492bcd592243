"""The groups that this node coordinates. Each is claimed in the registry first, which refuses the commits of others.

Three things keep a group from having two coordinators at a time: a view is settled before anything of it is claimed, a
node without its lease answers nothing, and a commit carries the claim's epoch, which the registry compares.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from archiver.serve.nodes.membership import Membership
from archiver.serve.nodes.node_store import NodeStore
from catalog.registry import GroupClaim
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_MOST_CLAIMS: Final = 50_000
_CLAIMS_AT_ONCE: Final = 2
"""Fewer than the store has connections: heartbeats go on while many groups are taken over."""


class Standing(Enum):
    """What this node is to a group."""

    COORDINATOR = "it coordinates it"
    OTHER = "another node does"
    LOADING = "it will, once the others have let it go"
    UNKNOWN = "the registry is away, so nobody here can say"


@dataclass(slots=True)
class _Held:
    claim: GroupClaim
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Claims:
    """The groups that this node coordinates. Use it from one event loop, but for `lost`."""

    def __init__(
        self,
        membership: Membership,
        store: NodeStore,
        *,
        let_go: Callable[[str], None],
        is_used: Callable[[str], bool],
        patience: float,
    ) -> None:
        """`let_go` forgets a group's members. A view is waited for at most `patience` seconds until it is settled."""
        self._membership = membership
        self._store = store
        self._let_go = let_go
        self._is_used = is_used
        self._patience = patience
        self._held: dict[str, _Held] = {}
        self._claiming: dict[str, asyncio.Task[Standing]] = {}
        self._slots = asyncio.Semaphore(_CLAIMS_AT_ONCE)

    @property
    def count(self) -> int:
        """How many groups are claimed."""
        return len(self._held)

    def standing(self, group_id: str) -> Standing:
        """What this node is to a group at this moment, without asking anybody."""
        if not self._membership.is_leased:
            return Standing.UNKNOWN
        members = self._membership.members
        if members.coordinator(group_id).node_id != self._membership.own.node_id:
            return Standing.OTHER
        return Standing.COORDINATOR if group_id in self._held or members.is_settled else Standing.LOADING

    async def claimed(self, group_id: str) -> GroupClaim | Standing:
        """Coordinate a group if it is this node's to do; what this node is to it otherwise."""
        standing = self.standing(group_id)
        if standing is Standing.LOADING:
            await self._membership.settled(self._patience)
            standing = self.standing(group_id)
        if standing is Standing.COORDINATOR and group_id not in self._held:
            task = self._claiming.get(group_id)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._claim(group_id))
                self._claiming[group_id] = task
                task.add_done_callback(lambda _: self._claiming.pop(group_id))
            standing = await asyncio.shield(task)
        if standing is not Standing.COORDINATOR:
            return standing
        held = self._held.get(group_id)
        return Standing.LOADING if held is None else held.claim

    def ended(self, group_id: str) -> asyncio.Future[None] | None:
        """Is done when this node coordinates the group no more. None if it doesn't."""
        held = self._held.get(group_id)
        return None if held is None else held.ended

    def review(self) -> None:
        """Let go of all groups that aren't this node's any more."""
        for group_id in list(self._held):
            members = self._membership.members
            is_own = members.coordinator(group_id).node_id == self._membership.own.node_id
            if not self._membership.is_joined or not is_own:
                self._drop(group_id)

    def lost(self, group_id: str, claim: GroupClaim) -> None:
        """The registry refused a claim. It is made again if the group still is this node's."""
        held = self._held.get(group_id)
        if held is not None and held.claim == claim:
            self._drop(group_id)

    async def _claim(self, group_id: str) -> Standing:
        try:
            async with self._slots:
                standing = self.standing(group_id)
                if standing is not Standing.COORDINATOR:  # in the view of this moment, which the claim would be of
                    return standing
                node_id, epoch = self._membership.own.node_id, self._membership.members.number
                claim = await asyncio.get_running_loop().run_in_executor(
                    None, lambda: self._store.claim(group_id, node_id=node_id, epoch=epoch)
                )
        except ContextError as error:
            _LOG.warning("group %s can't be coordinated", group_id, exc_info=error)
            return Standing.UNKNOWN
        standing = self.standing(group_id)
        if claim is None or standing is not Standing.COORDINATOR:
            return Standing.OTHER if standing is Standing.COORDINATOR else standing
        if len(self._held) >= _MOST_CLAIMS:
            for each in [each for each in self._held if not self._is_used(each)]:
                self._drop(each)
        self._held[group_id] = _Held(claim)
        return standing

    def _drop(self, group_id: str) -> None:
        held = self._held.pop(group_id, None)
        if held is not None:
            self._let_go(group_id)
            if not held.ended.done():
                held.ended.set_result(None)
