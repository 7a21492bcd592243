"""Marks used groups, releases unused claims, and expires offsets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from archiver.serve.groups import Coordinator, GroupOffsetStore
from archiver.serve.kafka.service import Kept
from archiver.serve.nodes import GroupDuty, GroupStanding, Need, NodeCluster

_LOG = logging.getLogger(__name__)
_EVERY: Final = 60.0
_OFTEN: Final = 10
"""Groups in use are noted at least this many times within the retention of offsets."""
_UNASKED_FOR: Final = 300.0
GRACE: Final = 1800.0
"""Seconds after the start in which nothing expires: members return, and the longest session lasts as long."""


class GroupUpkeep:
    """Use it from one event loop."""

    def __init__(
        self,
        cluster: NodeCluster,
        coordinator: Coordinator,
        offsets: GroupOffsetStore,
        kept: Kept,
        *,
        retention: float,
        grace: float = GRACE,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`retention` is for groups without members and commits, in seconds."""
        self._cluster = cluster
        self._coordinator = coordinator
        self._offsets = offsets
        self._kept = kept
        self._retention = retention
        self._grace = grace
        self._clock = clock or asyncio.get_running_loop().time
        self._began = self._clock()
        self._is_failing = False

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(_EVERY, self._retention / _OFTEN))
            await self.look()

    async def look(self) -> None:
        try:
            used = tuple(self._coordinator.groups)
            if used:
                await self._kept(self._offsets.use, used)
            await self._cluster.release_unused(_UNASKED_FOR)
            if self._clock() - self._began >= self._grace:
                await self._expire()
        except Exception as error:  # noqa: BLE001 - serving continues after any error
            if not self._is_failing:
                _LOG.warning("groups can't be looked after", exc_info=error)
            self._is_failing = True
        else:
            self._is_failing = False

    async def _expire(self) -> None:
        for group_id in await self._kept(self._offsets.expired, self._retention):
            if self._cluster.standing(group_id) is GroupStanding.COORDINATOR:
                expiring = partial(self._expired, group_id)
                await self._cluster.coordinating(group_id, expiring, is_kept=True, need=Need.OFFSETS)

    async def _expired(self, group_id: str, duty: GroupDuty) -> None:
        if group_id in self._coordinator.groups:
            return
        count = await self._kept(partial(self._offsets.expire, claim=duty.claim), group_id, self._retention)
        if count:
            _LOG.info("group %s had no members for long: %d offsets are forgotten", group_id, count)
