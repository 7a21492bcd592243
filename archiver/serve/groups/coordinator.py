"""All groups of a server.

A group keeps its protocol while it has members, which live in memory: after a restart they join again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, TypeAlias

from kio.schema.errors import ErrorCode

from archiver.serve.groups.budgets import GroupBudget, MemberMemory
from archiver.serve.groups.classic import (
    INITIAL_DELAY,
    ClassicGroup,
    Joined,
    Joining,
    MemberIds,
    Reply,
    Synced,
    Syncing,
)
from archiver.serve.groups.consumer import JOINING_EPOCH, Beat, Beaten, ConsumerGroup, GroupTimes, PartitionId, Topics
from archiver.serve.groups.heard_time import HeardTime

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup
"""A group of either protocol."""

LEAST_SESSION: Final = 1.0
MOST_SESSION: Final = 1800.0
_MOST_ID_BYTES: Final = 2000
"""The largest entry of the registry's index, less the topic's share of it."""
_WITH_MEMBER_EPOCHS: Final = 9
"""The first version of OffsetCommit and OffsetFetch that members of a group with epochs may use."""


def is_group_id(group_id: str) -> bool:
    """Whether the registry can store this group id."""
    return 0 < len(group_id.encode()) <= _MOST_ID_BYTES and "\0" not in group_id


class Coordinator:
    """Use it from one event loop."""

    def __init__(
        self,
        *,
        initial_delay: float = INITIAL_DELAY,
        times: GroupTimes | None = None,
        hears: Callable[[], bool] = lambda: True,
        memory: MemberMemory | None = None,
        over_budget: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """`over_budget` gets a refused member's owner and the budget's key.

        `hears`: whether members' requests are answered now.
        """
        self.times = times or GroupTimes()
        self._time = HeardTime(hears)
        self._asking: dict[str, Counter[str]] = {}
        self._initial_delay = initial_delay
        self._groups: dict[str, AnyGroup] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._numbers = count(1)
        self._member_ids = MemberIds()
        self._memory = memory or MemberMemory()
        self._over_budget = over_budget

    @property
    def groups(self) -> Mapping[str, AnyGroup]:
        return self._groups

    def classic(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    async def join(self, group_id: str, asked: Joining) -> Joined:
        """Waits until all members have joined, or had time to."""
        group = self._groups.get(group_id)
        error = ErrorCode.none
        if not is_group_id(group_id):
            error = ErrorCode.invalid_group_id
        elif not LEAST_SESSION <= asked.session_seconds <= MOST_SESSION:
            error = ErrorCode.invalid_session_timeout
        elif isinstance(group, ConsumerGroup):
            error = ErrorCode.inconsistent_group_protocol
        elif group is None and asked.member_id and not self.may_join(group_id, asked.member_id):
            error = ErrorCode.unknown_member_id
        else:
            member = None if group is None else group.members.get(asked.member_id)
            error = self._no_room(asked.budget, asked.takes - (0 if member is None else member.takes))
        if error is not ErrorCode.none or isinstance(group, ConsumerGroup):
            return Joined(ticket=0, error=error, member_id=asked.member_id)
        if group is None:
            group = ClassicGroup(group_id, initial_delay=self._initial_delay, member_ids=self._member_ids)
        ticket, answer = self._ticket()
        replies = group.join(self._now(), ticket, asked)
        if group.members:
            self._groups[group_id] = group
        self._reply(group, replies)
        joined: Joined = await answer
        return joined

    def may_join(self, group_id: str, member_id: str) -> bool:
        return self._member_ids.holds(group_id, member_id, self._now())

    async def sync(self, group_id: str, asked: Syncing) -> Synced:
        """Waits for the leader's assignment."""
        group = self.classic(group_id)
        if group is None:
            return Synced(ticket=0, error=ErrorCode.unknown_member_id)
        if asked.assignments:
            before = sum(len(member.assignment) for member in group.members.values())
            grows = sum(map(len, asked.assignments.values())) - before
            if self._no_room(asked.budget, grows) is not ErrorCode.none:
                return Synced(ticket=0, error=ErrorCode.unknown_server_error)
        ticket, answer = self._ticket()
        self._reply(group, group.sync(self._now(), ticket, asked))
        synced: Synced = await answer
        return synced

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        group = self.classic(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        error = group.heartbeat(self._now(), member_id, instance_id, generation)
        self._reply(group, ())
        return error

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        group = self.classic(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        error, replies = group.leave(self._now(), member_id, instance_id)
        if error is ErrorCode.none:
            self._reply(group, replies)
        return error

    def beat(self, group_id: str, beat: Beat, topics: Topics) -> Beaten:
        """The first heartbeat creates the group."""
        if not is_group_id(group_id):
            return Beaten(
                error=ErrorCode.invalid_group_id,
                message=f"a group needs an id of up to {_MOST_ID_BYTES} bytes, without NUL",
            )
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return Beaten(
                error=ErrorCode.group_id_not_found,
                message=f"group {group_id} has members with the classic protocol: stop these first, or join with"
                " group.protocol=classic",
            )
        if group is None and beat.epoch != JOINING_EPOCH:
            return Beaten(error=ErrorCode.unknown_member_id, message=f"group {group_id} has no members")
        member = None if group is None else group.members.get(beat.member_id)
        says_something = beat.epoch == JOINING_EPOCH or beat.names is not None or beat.pattern is not None
        grows = beat.takes - (0 if member is None else member.takes) if says_something else 0
        match self._no_room(beat.budget, grows):
            case ErrorCode.coordinator_not_available as error:
                return Beaten(error=error, message="there is no room for more members")
            case ErrorCode.group_max_size_reached as error:
                most = beat.budget.member_bytes
                return Beaten(error=error, message=f"{beat.budget.owner} has members that take {most} bytes")
            case _:
                pass
        if group is None:
            group = ConsumerGroup(group_id, self.times)
        beaten = group.beat(self._now(), beat, topics)
        if group.members:
            self._groups[group_id] = group
        self._wake(group)
        return beaten

    def commit_error(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        partitions: Collection[PartitionId] = (),
        version: int = _WITH_MEMBER_EPOCHS,
    ) -> ErrorCode:
        """Clients outside the group may commit while it has no members."""
        if not is_group_id(group_id):
            return ErrorCode.invalid_group_id
        match self._groups.get(group_id):
            case None if generation < 0:
                return ErrorCode.none
            case None:
                is_old = version < _WITH_MEMBER_EPOCHS
                return ErrorCode.illegal_generation if is_old else ErrorCode.unknown_member_id
            case ConsumerGroup() as group:
                if version < _WITH_MEMBER_EPOCHS and member_id in group.members:
                    return ErrorCode.unsupported_version
                return group.commit_error(member_id, instance_id, generation, partitions)
            case ClassicGroup() as group:
                return group.commit_error(self._now(), member_id, instance_id, generation)

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        if not is_group_id(group_id):
            return ErrorCode.invalid_group_id
        group = self.consumer(group_id)
        return ErrorCode.none if group is None else group.fetch_error(member_id, epoch)

    @contextmanager
    def asking(
        self, group_id: str, member_id: str, instance_id: str | None = None, generation: int | None = None
    ) -> Iterator[None]:
        """Keep a known member's session open during its request, then reset it."""
        before = self._groups.get(group_id)
        if before is None or (generation is not None and not before.knows(member_id, instance_id, generation)):
            yield
            return
        asking = self._asking.setdefault(group_id, Counter())
        asking[member_id] += 1
        try:
            yield
        finally:
            asking[member_id] -= 1
            if not asking[member_id]:
                del asking[member_id]
            if not asking:
                self._asking.pop(group_id, None)
            group = self._groups.get(group_id)
            if group is not None:
                group.seen(self._now(), member_id)

    def forget(self, group_id: str) -> None:
        """Waiting requests are answered NOT_COORDINATOR."""
        self._groups.pop(group_id, None)
        self._memory.drop(group_id)
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        self._time.close()
        for timer in self._timers.values():
            timer.cancel()
        for waiting in self._waiting.values():
            waiting.cancel()

    def _no_room(self, budget: GroupBudget, size: int) -> ErrorCode:
        if self._memory.is_over(budget, size):
            self._over_budget(budget.owner, "member_memory")
            return ErrorCode.group_max_size_reached
        return ErrorCode.coordinator_not_available if self._memory.is_full(size) else ErrorCode.none

    def _ticket(self) -> tuple[int, asyncio.Future[Any]]:
        ticket = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = answer
        answer.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        return ticket, answer

    def _reply(self, group: ClassicGroup, replies: Iterable[Reply]) -> None:
        for reply in replies:
            answer = self._waiting.get(reply.ticket)
            if answer is not None and not answer.done():
                answer.set_result(reply)
        self._wake(group)

    def _wake(self, group: AnyGroup) -> None:
        timer = self._timers.pop(group.group_id, None)
        if timer is not None:
            timer.cancel()
        if group.is_unused:
            self._memory.drop(group.group_id)
            self._groups.pop(group.group_id, None)
            return
        self._memory.put(group.group_id, group.taken)
        deadline = group.deadline()
        if deadline < float("inf"):
            loop = asyncio.get_running_loop()
            self._timers[group.group_id] = loop.call_later(max(0.0, deadline - self._now()), self._tick, group)

    def _tick(self, group: AnyGroup) -> None:
        for member in self._asking.get(group.group_id, ()):
            group.seen(self._now(), member)
        match group:
            case ConsumerGroup():
                group.tick(self._now())
                self._wake(group)
            case ClassicGroup():
                self._reply(group, group.tick(self._now()))

    def _now(self) -> float:
        return self._time.now()
