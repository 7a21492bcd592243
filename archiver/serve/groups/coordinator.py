"""All groups of a server: gives them the time, and their answers to the requests that wait.

Members live in memory. After a restart of the server nobody is known; clients join again, and go on at the offsets
that they committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups.group import INITIAL_DELAY, Group
from archiver.serve.groups.members import Joined, Joining, Reply, Synced, Syncing

MOST_GROUPS: Final = 10_000
LEAST_SESSION: Final = 1.0
MOST_SESSION: Final = 1800.0


class Coordinator:
    """The groups of a server. Use it from one event loop."""

    def __init__(self, *, initial_delay: float = INITIAL_DELAY) -> None:
        self._initial_delay = initial_delay
        self._groups: dict[str, Group] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._numbers = count(1)

    @property
    def groups(self) -> Mapping[str, Group]:
        """The groups that have members."""
        return self._groups

    async def join(self, group_id: str, asked: Joining) -> Joined:
        """Join a group. The answer comes when all members have joined, or had the time to."""
        error = ErrorCode.none
        if not group_id:
            error = ErrorCode.invalid_group_id
        elif not LEAST_SESSION <= asked.session_seconds <= MOST_SESSION:
            error = ErrorCode.invalid_session_timeout
        elif group_id not in self._groups and asked.member_id:
            error = ErrorCode.unknown_member_id
        elif group_id not in self._groups and len(self._groups) >= MOST_GROUPS:
            error = ErrorCode.coordinator_not_available
        if error is not ErrorCode.none:
            return Joined(ticket=0, error=error, member_id=asked.member_id)
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, initial_delay=self._initial_delay)
        ticket, answer = self._ticket()
        self._reply(group, group.join(self._now(), ticket, asked))
        joined: Joined = await answer
        return joined

    async def sync(self, group_id: str, asked: Syncing) -> Synced:
        """Ask for an assignment. The answer comes when the leader has assigned."""
        group = self._groups.get(group_id)
        if group is None:
            return Synced(ticket=0, error=ErrorCode.unknown_member_id)
        ticket, answer = self._ticket()
        self._reply(group, group.sync(self._now(), ticket, asked))
        synced: Synced = await answer
        return synced

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Take in a sign of life."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        error = group.heartbeat(self._now(), member_id, instance_id, generation)
        self._reply(group, ())
        return error

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        """Let a member go."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        error, replies = group.leave(self._now(), member_id, instance_id)
        self._reply(group, replies)
        return error

    def commit_error(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether offsets may be committed. Who is in no group may commit where nobody is."""
        if not group_id:
            return ErrorCode.invalid_group_id
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.none if generation < 0 else ErrorCode.illegal_generation
        return group.commit_error(self._now(), member_id, instance_id, generation)

    def close(self) -> None:
        """Give up all groups, and the requests that wait."""
        for timer in self._timers.values():
            timer.cancel()
        for each in self._waiting.values():
            each.cancel()

    def _ticket(self) -> tuple[int, asyncio.Future[Any]]:
        ticket = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        return ticket, answer

    def _reply(self, group: Group, replies: Iterable[Reply]) -> None:
        """Answer who waits, and look again when the group has something to do."""
        for each in replies:
            answer = self._waiting.get(each.ticket)
            if answer is not None and not answer.done():
                answer.set_result(each)
        timer = self._timers.pop(group.group_id, None)
        if timer is not None:
            timer.cancel()
        if group.is_unused:
            self._groups.pop(group.group_id, None)
            return
        deadline = group.deadline()
        if deadline < float("inf"):
            loop = asyncio.get_running_loop()
            self._timers[group.group_id] = loop.call_at(deadline, self._tick, group)

    def _tick(self, group: Group) -> None:
        self._reply(group, group.tick(self._now()))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
