"""KIP-848 groups as a state machine without I/O.

Changes raise the group epoch and compute new targets, which heartbeats deliver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer.assignors import ASSIGNORS
from archiver.serve.groups.consumer.members import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    PAUSING_EPOCH,
    Beat,
    Beaten,
    ConsumerMember,
    ConsumerState,
    MemberState,
    PartitionId,
)
from archiver.serve.groups.consumer.reconciliation import HeldPlaces, reconcile
from archiver.serve.groups.consumer.subscriptions import (
    KnownTopic,
    MatchedTopics,
    Topics,
    pattern_error,
    wanted,
)

_MOST_MEMBERS: Final = 10_000
MOST_BYTES: Final = 4 << 20
"""What members say of what they want, in all."""
_DEFAULT_ASSIGNOR: Final = next(iter(ASSIGNORS))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """Heartbeat interval and session timeout, in seconds."""

    interval: float = 5.0
    session: float = 45.0


class ConsumerGroup:
    """A group. Its epoch never falls."""

    def __init__(self, group_id: str, times: GroupTimes) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.assignment_epoch = 0
        self.assignor = _DEFAULT_ASSIGNOR
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, frozenset[PartitionId]] = {}
        self._times = times
        self._static: dict[str, str] = {}
        self._topics: Topics = MatchedTopics({})
        self._seen: dict[UUID, KnownTopic] = {}
        self._held = HeldPlaces()
        self._size = 0
        self._taken: Counter[str] | None = None

    @property
    def is_unused(self) -> bool:
        return not self.members

    @property
    def size(self) -> int:
        return self._size

    @property
    def taken(self) -> Counter[str]:
        """In bytes, by owner; the same object until something changes."""
        if self._taken is None:
            self._taken = Counter()
            for member in self.members.values():
                self._taken[member.owner] += member.takes
        return self._taken

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.assignment_epoch != self.epoch:
            return ConsumerState.ASSIGNING
        is_settled = all(
            member.is_away or (member.state is MemberState.STABLE and member.epoch == self.epoch)
            for member in self.members.values()
        )
        return ConsumerState.STABLE if is_settled else ConsumerState.RECONCILING

    def deadline(self) -> float:
        return min((min(member.expires, member.revokes_by) for member in self.members.values()), default=float("inf"))

    def tick(self, now: float) -> None:
        for member in [member for member in self.members.values() if min(member.expires, member.revokes_by) <= now]:
            self._remove(member)

    def beat(self, now: float, beat: Beat, topics: Topics) -> Beaten:
        mistake = _mistake(beat, topics)
        if mistake is not None:
            return mistake
        if beat.epoch < JOINING_EPOCH:
            return self._leave(now, beat)
        if beat.size and not self._has_room_for(beat):
            return _refused(ErrorCode.group_max_size_reached, f"members of the group name more than {MOST_BYTES} bytes")
        member = self._joining(beat) if beat.epoch == JOINING_EPOCH else self._known(beat)
        if isinstance(member, Beaten):
            return member
        self._take_in(member, beat)
        self._look_at(topics)
        if self.assignment_epoch != self.epoch:
            self._assign()
        revoking = member.revoking
        reconcile(
            member,
            epoch=self.assignment_epoch,
            target=self.targets[member.member_id],
            owned=beat.owned,
            held=self._held,
        )
        member.expires = now + self._times.session
        if member.state not in (MemberState.UNREVOKED, MemberState.UNHEARD):
            member.revokes_by = float("inf")
        elif member.revoking != revoking or member.revokes_by == float("inf"):
            member.revokes_by = now + member.rebalance_seconds
        # An answer may be lost, and not every client repeats everything then: repeat it until the client confirms it.
        is_told = beat.is_full or beat.epoch != member.epoch or member.assigned != member.owned
        return Beaten(member_id=member.member_id, epoch=member.epoch, assigned=member.assigned if is_told else None)

    def seen(self, now: float, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.expires = now + self._times.session

    def commit_error(
        self, member_id: str, instance_id: str | None, epoch: int, partitions: Collection[PartitionId]
    ) -> ErrorCode:
        """A member with an older epoch may commit partitions that it has held since."""
        error, member = self._asked(member_id, instance_id, epoch)
        if error is not ErrorCode.stale_member_epoch or member is None or epoch > member.epoch:
            return error
        is_own = all(partition in member.assigned and member.since[partition] <= epoch for partition in partitions)
        return ErrorCode.none if partitions and is_own and epoch > JOINING_EPOCH else error

    def knows(self, member_id: str, instance_id: str | None, epoch: int) -> bool:
        error, member = self._asked(member_id, instance_id, epoch)
        return error is ErrorCode.none or (member is not None and JOINING_EPOCH < epoch == member.previous_epoch)

    def fetch_error(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Clients that name no member are allowed."""
        if member_id is None and epoch < JOINING_EPOCH:
            return ErrorCode.none
        return self._asked(member_id or "", None, epoch)[0]

    def _has_room_for(self, beat: Beat) -> bool:
        member = self.members.get(self._static.get(beat.instance_id or "", beat.member_id))
        if member is None:
            return self._size + beat.size <= MOST_BYTES
        kept = (member.names_size if beat.names is None else 0) + (len(member.pattern) if beat.pattern is None else 0)
        return self._size - member.size + kept + beat.size <= MOST_BYTES

    def _asked(self, member_id: str, instance_id: str | None, epoch: int) -> tuple[ErrorCode, ConsumerMember | None]:
        if instance_id is not None and self._static.get(instance_id, member_id) != member_id:
            return ErrorCode.fenced_instance_id, None
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.unknown_member_id, None
        return ErrorCode.none if epoch == member.epoch else ErrorCode.stale_member_epoch, member

    def _joining(self, beat: Beat) -> ConsumerMember | Beaten:
        instance = beat.instance_id
        owner = self._static.get(instance) if instance is not None else None
        if owner is not None and owner != beat.member_id:
            before = self.members[owner]
            if not before.is_away:
                return _refused(
                    ErrorCode.unreleased_instance_id,
                    f"instance {instance} is another member, {owner}, which has not left: stop that process, or wait"
                    " until its session is over",
                )
            return self._replace(before, beat.member_id)
        member = self.members.get(beat.member_id)
        if member is not None and member.instance_id != instance:
            self._remove(member)
            member = None
        if member is None:
            if len(self.members) >= _MOST_MEMBERS:
                return _refused(ErrorCode.group_max_size_reached, f"the group has {_MOST_MEMBERS} members")
            return self._add(ConsumerMember(member_id=beat.member_id, instance_id=instance))
        member.epoch, member.previous_epoch = JOINING_EPOCH, JOINING_EPOCH
        return self._holding_nothing_else(member)

    def _known(self, beat: Beat) -> ConsumerMember | Beaten:
        if beat.instance_id is not None:
            owner = self._static.get(beat.instance_id)
            if owner is None:
                return _refused(ErrorCode.unknown_member_id, f"instance {beat.instance_id} is no member of the group")
            if owner != beat.member_id:
                return _refused(
                    ErrorCode.fenced_instance_id, f"another process took the place of instance {beat.instance_id}"
                )
        member = self.members.get(beat.member_id)
        if member is None:
            return _refused(ErrorCode.unknown_member_id, f"{beat.member_id} is no member of the group")
        owned = member.owned if beat.owned is None else beat.owned
        has_missed_one = beat.epoch == member.previous_epoch and owned <= member.assigned
        if beat.epoch == member.epoch or (beat.epoch < member.epoch and has_missed_one):
            return member
        return _refused(
            ErrorCode.fenced_member_epoch,
            f"the member is at epoch {member.epoch} and not at {beat.epoch}: give up all partitions and join again",
        )

    def _leave(self, now: float, beat: Beat) -> Beaten:
        member = self.members.get(beat.member_id)
        if beat.instance_id is not None:
            owner = self._static.get(beat.instance_id)
            if owner is not None and owner != beat.member_id:
                return _refused(
                    ErrorCode.fenced_instance_id, f"another process took the place of instance {beat.instance_id}"
                )
        if member is None:
            return _refused(ErrorCode.unknown_member_id, f"{beat.member_id} is no member of the group")
        if beat.epoch == LEAVING_EPOCH or member.instance_id is None:
            self._remove(member)
        else:
            member.epoch = PAUSING_EPOCH
            member.expires = now + self._times.session
            self._holding_nothing_else(member)
        return Beaten(member_id=beat.member_id, epoch=beat.epoch)

    def _add(self, member: ConsumerMember) -> ConsumerMember:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        self._change()
        return member

    def _replace(self, before: ConsumerMember, member_id: str) -> ConsumerMember:
        assert before.instance_id is not None
        replaced = before.member_id
        del self.members[replaced]
        before.member_id, before.epoch, before.previous_epoch = member_id, JOINING_EPOCH, JOINING_EPOCH
        self.members[member_id] = before
        self._static[before.instance_id] = member_id
        self.targets[member_id] = self.targets.pop(replaced, frozenset())
        return before

    def _remove(self, member: ConsumerMember) -> None:
        del self.members[member.member_id]
        self._size -= member.size
        self._taken = None
        self.targets.pop(member.member_id, None)
        if member.instance_id is not None and self._static.get(member.instance_id) == member.member_id:
            del self._static[member.instance_id]
        self._held.release(member.assigned | member.revoking)
        self._change()

    def _holding_nothing_else(self, member: ConsumerMember) -> ConsumerMember:
        self._held.release(member.revoking)
        member.revoking = frozenset()
        member.state = MemberState.STABLE
        member.revokes_by = float("inf")
        return member

    def _take_in(self, member: ConsumerMember, beat: Beat) -> None:
        member.client_id, member.host, member.owner = beat.client_id, beat.host, beat.budget.owner
        if beat.owned is not None:
            owned = beat.owned & (member.assigned | member.revoking)
            # Of what it makes up one is enough to know that it holds something else, and no memory is spent on more.
            member.owned = owned | frozenset(islice(beat.owned - owned, 1))
        member.rack_id = beat.rack_id if beat.rack_id is not None else member.rack_id
        if beat.rebalance_seconds is not None:
            member.rebalance_seconds = beat.rebalance_seconds
        is_joining = beat.epoch == JOINING_EPOCH
        if is_joining or beat.names is not None or beat.pattern is not None:
            self._taken = None
        names = beat.names if beat.names is not None or not is_joining else frozenset()
        pattern = beat.pattern if beat.pattern is not None or not is_joining else ""
        wants_others = (names is not None and names != member.names) or (
            pattern is not None and pattern != member.pattern
        )
        self._size -= member.size
        if names is not None:
            member.names, member.names_size = names, sum(map(len, names))
        if pattern is not None:
            member.pattern = pattern
        self._size += member.size
        if wants_others or beat.rights is not member.rights or member.looked_up_in is not self._topics:
            member.rights, before = beat.rights, member.topics
            self._look_up(member)
            if wants_others or member.topics != before:
                self._change()
        if beat.assignor is not None and beat.assignor != member.assignor:
            member.assignor = beat.assignor
            if self._preferred() != self.assignor:
                self._change()

    def _look_at(self, topics: Topics) -> None:
        if topics is self._topics:
            return
        self._topics = topics
        by_id = {topic.topic_id: topic for topic in topics.values()}
        before = {topic: self._seen.get(topic) for member in self.members.values() for topic in member.topics}
        for member in self.members.values():
            self._look_up(member)
        now = {topic: by_id[topic] for member in self.members.values() for topic in member.topics}
        self._seen = by_id
        if before != now:
            self._change()

    def _look_up(self, member: ConsumerMember) -> None:
        topics = wanted(member.names, member.pattern, self._topics, member.rights)
        if topics is not None:
            member.topics, member.looked_up_in = topics, self._topics

    def _preferred(self) -> str:
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return max(ASSIGNORS, key=lambda name: votes[name]) if votes else _DEFAULT_ASSIGNOR

    def _change(self) -> None:
        if self.epoch == self.assignment_epoch:
            self.epoch += 1

    def _assign(self) -> None:
        """An absent static member gets no more partitions."""
        self.assignor = self._preferred()
        ordered = sorted(
            self.members.values(), key=lambda joined: (joined.instance_id or joined.member_id, joined.member_id)
        )
        self.targets = ASSIGNORS[self.assignor](
            {member.member_id: member.topics for member in ordered},
            {topic_id: topic.partitions for topic_id, topic in self._seen.items()},
            self.targets,
        )
        self.assignment_epoch = self.epoch
        for member in ordered:
            if member.is_away:
                self._held.release(member.assigned - self.targets[member.member_id])
                member.assigned &= self.targets[member.member_id]


def _mistake(beat: Beat, topics: Topics) -> Beaten | None:
    text = None
    if not beat.member_id:
        text = "a member needs an id"
    elif beat.epoch < PAUSING_EPOCH:
        text = f"there is no epoch {beat.epoch}"
    elif beat.epoch == PAUSING_EPOCH and beat.instance_id is None:
        text = "only a static member can leave and say that it will be back"
    elif "" in (beat.instance_id, beat.rack_id):
        text = "instance and rack may not be empty"
    elif beat.epoch == JOINING_EPOCH and not beat.is_full:
        text = "who joins says its time to rebalance, the topics that it wants, and that it holds none"
    elif beat.epoch == JOINING_EPOCH and beat.owned:
        text = "who joins holds no partitions"
    if text is not None:
        return _refused(ErrorCode.invalid_request, text)
    if beat.assignor is not None and beat.assignor not in ASSIGNORS:
        names = ", ".join(ASSIGNORS)
        return _refused(ErrorCode.unsupported_assignor, f"assignor {beat.assignor} isn't known, only {names}")
    trouble = pattern_error(beat.pattern, topics) if beat.pattern else None
    return None if trouble is None else _refused(ErrorCode.invalid_regular_expression, trouble)


def _refused(error: ErrorCode, message: str) -> Beaten:
    return Beaten(error=error, message=message)
