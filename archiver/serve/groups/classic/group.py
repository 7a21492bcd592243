"""Classic consumer groups as a state machine without I/O.

Methods return waiting requests that can be answered. States and errors are Kafka's (GroupCoordinator).
"""

from __future__ import annotations

from collections import Counter
from typing import Final
from uuid import uuid4

from kio.schema.errors import ErrorCode

from archiver.serve.groups.budgets import PENDING_BYTES
from archiver.serve.groups.classic.member_ids import MemberIds
from archiver.serve.groups.classic.members import (
    ClassicMember,
    GroupState,
    Joined,
    Joining,
    Reply,
    Synced,
    Syncing,
    Ticket,
    said,
)

INITIAL_DELAY: Final = 0.5
"""How long the first rebalance of an empty group waits for more members."""
_MOST_MEMBERS: Final = 10_000
_MOST_PENDING: Final = 1000
"""A rebalance waits for at most this many members that were given an id and have yet to join with it."""
_PENDING_SECONDS: Final = 60.0
"""How long an id can be joined with, if the session isn't shorter."""
_LEAST_REPEATED: Final = 1.0
_NEW_MEMBER_SECONDS: Final = 300.0
"""How long the first join of a member waits, as Kafka's `classicGroupNewMemberJoinTimeoutMs`."""
MOST_BYTES: Final = 4 << 20
"""What members say of themselves and are assigned, in all. A broker's default for a group is a quarter of it."""


class ClassicGroup:
    """A group. Its generation rises with each rebalance."""

    def __init__(
        self, group_id: str, *, initial_delay: float = INITIAL_DELAY, member_ids: MemberIds | None = None
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self._initial_delay = initial_delay
        self._static: dict[str, str] = {}
        self._member_ids = member_ids or MemberIds()
        self._pending: dict[str, tuple[float, str]] = {}
        self._taken: Counter[str] | None = None
        self._opens = float("-inf")
        self._closes = float("inf")

    @property
    def is_unused(self) -> bool:
        return not self.members

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members.values())

    @property
    def taken(self) -> Counter[str]:
        """In bytes, by owner; the same object until something changes."""
        if self._taken is None:
            self._taken = Counter()
            for member in self.members.values():
                self._taken[member.owner] += member.takes
            for member_id, (_, owner) in self._pending.items():
                self._taken[owner] += PENDING_BYTES + len(member_id)
        return self._taken

    def deadline(self) -> float:
        times = [until for until, _ in self._pending.values()]
        times += [member.expires for member in self.members.values() if member.may_expire]
        if self.state is GroupState.PREPARING:
            times.append(self._opens if self._all_joined() else self._closes)
        elif self.state is GroupState.COMPLETING:
            times.append(self._closes)
        return min(times, default=float("inf"))

    def join(self, now: float, ticket: Ticket, asked: Joining) -> list[Reply]:
        self._taken = None
        error = self._join_error(now, asked)
        if error is not ErrorCode.none:
            return [Joined(ticket=ticket, error=error, member_id=asked.member_id)]
        if asked.member_id:
            return self._rejoin(now, ticket, asked)
        if asked.instance_id is not None:
            return self._join_static(now, ticket, asked)
        if not asked.needs_id:
            return self._add(now, ticket, asked, f"{asked.client_id}-{uuid4()}")
        until = now + min(asked.session_seconds, _PENDING_SECONDS)
        member_id = self._member_ids.new(self.group_id, asked.client_id, until)
        if self.members and len(self._pending) < _MOST_PENDING:
            self._pending[member_id] = until, asked.budget.owner
        return [Joined(ticket=ticket, error=ErrorCode.member_id_required, member_id=member_id)]

    def sync(self, now: float, ticket: Ticket, asked: Syncing) -> list[Reply]:
        error = self.member_error(asked.member_id, asked.instance_id, asked.generation)
        is_other = asked.protocol_type not in (None, self.protocol_type) or asked.protocol not in (None, self.protocol)
        if error is ErrorCode.none and is_other:
            error = ErrorCode.inconsistent_group_protocol
        if error is ErrorCode.none and self.state is GroupState.PREPARING:
            error = ErrorCode.rebalance_in_progress
        if error is ErrorCode.none and not self._has_room_for(asked):
            error = ErrorCode.unknown_server_error  # as a broker says whose log doesn't take it
        if error is not ErrorCode.none:
            return [Synced(ticket=ticket, error=error)]
        member = self.members[asked.member_id]
        member.seen(now)
        member.has_synced = True
        if self.state is GroupState.STABLE:
            return [self._synced(ticket, member)]
        replaced = member.syncing
        member.syncing = ticket
        replies: list[Reply] = []
        if replaced is not None:
            replies.append(Synced(ticket=replaced, error=ErrorCode.unknown_server_error))
        if asked.member_id == self.leader:
            self._taken = None
            self.state = GroupState.STABLE
            self._closes = float("inf")
            for member in self.members.values():
                member.assignment = asked.assignments.get(member.member_id, b"")
                member.seen(now)
                if member.syncing is not None:
                    replies.append(self._synced(member.syncing, member))
                    member.syncing = None
        return replies

    def _has_room_for(self, asked: Syncing) -> bool:
        is_assignment = bool(asked.assignments) and asked.member_id == self.leader
        said_by_all = sum(said(member.protocols) for member in self.members.values())
        return not is_assignment or said_by_all + sum(map(len, asked.assignments.values())) <= MOST_BYTES

    def heartbeat(self, now: float, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        error = self.member_error(member_id, instance_id, generation)
        if error is not ErrorCode.none:
            return error
        self.members[member_id].seen(now)
        return ErrorCode.rebalance_in_progress if self.state is GroupState.PREPARING else ErrorCode.none

    def seen(self, now: float, member_id: str) -> None:
        if member_id in self.members:
            self.members[member_id].seen(now)

    def leave(self, now: float, member_id: str, instance_id: str | None) -> tuple[ErrorCode, list[Reply]]:
        """A static member leaves by its instance id alone."""
        if instance_id is not None:
            owner = self._static.get(instance_id)
            if owner is None:
                return ErrorCode.unknown_member_id, []
            if member_id and member_id != owner:
                return ErrorCode.fenced_instance_id, []
            member_id = owner
        if member_id not in self.members and member_id not in self._pending:
            return ErrorCode.unknown_member_id, []
        self._taken = None
        if self._pending.pop(member_id, None) is not None:
            return ErrorCode.none, self._completed_if_all(now)
        return ErrorCode.none, self._remove(now, member_id)

    def tick(self, now: float) -> list[Reply]:
        self._taken = None
        self._pending = {member_id: pending for member_id, pending in self._pending.items() if pending[0] > now}
        replies: list[Reply] = []
        for member in list(self.members.values()):
            if member.expires <= now and member.may_expire:
                replies += self._remove(now, member.member_id)
        if self.state is GroupState.COMPLETING and now >= self._closes:
            for member in [member for member in self.members.values() if not member.has_synced]:
                replies += self._remove(now, member.member_id)
        if self.state is GroupState.PREPARING and now >= self._closes:
            return replies + self._completed(now)
        return replies + self._completed_if_all(now)

    def commit_error(self, now: float, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Also resets the session timer."""
        if generation < 0 and not self.members:
            return ErrorCode.none
        error = self.member_error(member_id, instance_id, generation)
        if error is not ErrorCode.none:
            return error
        self.members[member_id].seen(now)
        return ErrorCode.rebalance_in_progress if self.state is GroupState.COMPLETING else ErrorCode.none

    def knows(self, member_id: str, instance_id: str | None, generation: int) -> bool:
        return self.member_error(member_id, instance_id, generation) is ErrorCode.none

    def member_error(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        if instance_id is not None:
            owner = self._static.get(instance_id)
            if owner is None:
                return ErrorCode.unknown_member_id
            if owner != member_id:
                return ErrorCode.fenced_instance_id
        if member_id not in self.members:
            return ErrorCode.unknown_member_id
        return ErrorCode.none if generation == self.generation else ErrorCode.illegal_generation

    def _join_error(self, now: float, asked: Joining) -> ErrorCode:
        if not asked.protocol_type or not asked.protocols:
            return ErrorCode.inconsistent_group_protocol
        members = [member for member in self.members.values() if member.member_id != asked.member_id]
        if sum(member.size for member in members) + said(asked.protocols) > MOST_BYTES:
            return ErrorCode.group_max_size_reached
        if members:
            shared = {name for name, _ in asked.protocols}.intersection(*map(_names, members))
            if asked.protocol_type != self.protocol_type or not shared:
                return ErrorCode.inconsistent_group_protocol
        is_known = asked.member_id in self.members
        if not is_known and len(self.members) >= _MOST_MEMBERS:
            return ErrorCode.group_max_size_reached
        static = self._static.get(asked.instance_id) if asked.member_id and asked.instance_id is not None else None
        if static not in (None, asked.member_id):
            return ErrorCode.fenced_instance_id
        may_join = not asked.member_id or is_known or self._member_ids.holds(self.group_id, asked.member_id, now)
        return ErrorCode.none if may_join else ErrorCode.unknown_member_id

    def _add(self, now: float, ticket: Ticket, asked: Joining, member_id: str) -> list[Reply]:
        self._pending.pop(member_id, None)
        self.members[member_id] = ClassicMember(
            member_id=member_id,
            instance_id=asked.instance_id,
            client_id=asked.client_id,
            host=asked.host,
            session_seconds=asked.session_seconds,
            rebalance_seconds=asked.rebalance_seconds,
            protocols=asked.protocols,
            expires=now + _NEW_MEMBER_SECONDS,
            joining=ticket,
            owner=asked.budget.owner,
        )
        if asked.instance_id is not None:
            self._static[asked.instance_id] = member_id
        self.protocol_type = asked.protocol_type
        self.leader = self.leader or member_id
        return self._prepare(now)

    def _rejoin(self, now: float, ticket: Ticket, asked: Joining) -> list[Reply]:
        member = self.members.get(asked.member_id)
        if member is None:
            return self._add(now, ticket, asked, asked.member_id)
        is_same = member.protocols == asked.protocols
        is_leader = member.member_id == self.leader
        if is_same and (self.state is GroupState.COMPLETING or (self.state is GroupState.STABLE and not is_leader)):
            member.seen(now)
            return [self._joined(ticket, member)]
        return self._wait(now, ticket, member, asked)

    def _wait(self, now: float, ticket: Ticket, member: ClassicMember, asked: Joining) -> list[Reply]:
        replies: list[Reply] = []
        if member.joining is not None:  # the client repeated its request: the first one has no reader any more
            replies.append(Joined(ticket=member.joining, error=ErrorCode.unknown_member_id))
        member.joining = ticket
        member.take_in(asked)
        member.seen(now)
        self.protocol_type = asked.protocol_type
        return replies + self._prepare(now)

    def _join_static(self, now: float, ticket: Ticket, asked: Joining) -> list[Reply]:
        assert asked.instance_id is not None
        member_id = f"{asked.instance_id}-{uuid4()}"
        owner = self._static.get(asked.instance_id)
        if owner is None:
            return self._add(now, ticket, asked, member_id)
        member = self.members.pop(owner)
        replies: list[Reply] = []
        if member.joining is not None:
            replies.append(Joined(ticket=member.joining, error=ErrorCode.fenced_instance_id))
        if member.syncing is not None:
            replies.append(Synced(ticket=member.syncing, error=ErrorCode.fenced_instance_id))
        member.member_id, member.joining, member.syncing = member_id, None, None
        self.members[member_id] = member
        self._static[asked.instance_id] = member_id
        was_leader = self.leader == owner
        self.leader = member_id if was_leader else self.leader
        is_same = member.protocols == asked.protocols
        member.take_in(asked)
        if self.state is GroupState.STABLE and is_same:
            member.seen(now)
            joined = self._joined(ticket, member, skips=was_leader)
            if was_leader and not asked.may_skip:  # a leader would assign again, and no other member would request it
                joined = self._joined(ticket, member, leader=owner)
            return [*replies, joined]
        return replies + self._wait(now, ticket, member, asked)

    def _prepare(self, now: float) -> list[Reply]:
        replies: list[Reply] = []
        if self.state is not GroupState.PREPARING:
            self._opens = now + self._initial_delay if self.state is GroupState.EMPTY else now
            self.state = GroupState.PREPARING
            self._closes = now
            for member in self.members.values():
                if member.syncing is not None:
                    replies.append(Synced(ticket=member.syncing, error=ErrorCode.rebalance_in_progress))
                    member.syncing = None
                    member.seen(now)
            self._closes = max(
                self._opens, now + max((member.rebalance_seconds for member in self.members.values()), default=0.0)
            )
        return replies + self._completed_if_all(now)

    def _all_joined(self) -> bool:
        return not self._pending and all(member.joining is not None for member in self.members.values())

    def _completed_if_all(self, now: float) -> list[Reply]:
        is_due = self.state is GroupState.PREPARING and self._all_joined() and now >= self._opens
        return self._completed(now) if is_due else []

    def _completed(self, now: float) -> list[Reply]:
        for member in [
            member for member in self.members.values() if member.joining is None and member.instance_id is None
        ]:
            self._forget(member)
        joined = [member for member in self.members.values() if member.joining is not None]
        if self.members and not joined:
            longest = max(member.rebalance_seconds for member in self.members.values())
            self._closes = now + max(longest, _LEAST_REPEATED)
            return []
        self.generation += 1
        if not joined:
            self.state, self.protocol, self.leader = GroupState.EMPTY, None, None
            self._closes = float("inf")
            return []
        if self.leader not in {member.member_id for member in joined}:
            self.leader = joined[0].member_id
        self.protocol = self._chosen()
        self.state = GroupState.COMPLETING
        self._closes = now + max(member.rebalance_seconds for member in joined)
        replies: list[Reply] = []
        for member in joined:
            assert member.joining is not None
            member.has_synced = False
            replies.append(self._joined(member.joining, member))
            member.joining, member.is_new = None, False
            member.seen(now)
        return replies

    def _chosen(self) -> str:
        shared = set.intersection(*(set(_names(member)) for member in self.members.values()))
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name in _names(member) if name in shared)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _remove(self, now: float, member_id: str) -> list[Reply]:
        member = self.members[member_id]
        replies: list[Reply] = []
        if member.joining is not None:
            replies.append(Joined(ticket=member.joining, error=ErrorCode.unknown_member_id))
        if member.syncing is not None:
            replies.append(Synced(ticket=member.syncing, error=ErrorCode.unknown_member_id))
        self._forget(member)
        if self.state in (GroupState.STABLE, GroupState.COMPLETING):
            return replies + self._prepare(now)
        return replies + self._completed_if_all(now)

    def _forget(self, member: ClassicMember) -> None:
        del self.members[member.member_id]
        if member.instance_id is not None and self._static.get(member.instance_id) == member.member_id:
            del self._static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def _joined(
        self, ticket: Ticket, member: ClassicMember, *, skips: bool = False, leader: str | None = None
    ) -> Joined:
        is_leader = member.member_id == self.leader and leader is None
        members = tuple(
            (member.member_id, member.instance_id, member.metadata(self.protocol)) for member in self.members.values()
        )
        return Joined(
            ticket=ticket,
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=leader or self.leader or "",
            skips=skips,
            members=members if is_leader else (),
        )

    def _synced(self, ticket: Ticket, member: ClassicMember) -> Synced:
        return Synced(
            ticket=ticket, protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )


def _names(member: ClassicMember) -> tuple[str, ...]:
    return tuple(name for name, _ in member.protocols)
