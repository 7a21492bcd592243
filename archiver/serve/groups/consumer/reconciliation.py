"""One member's way from what it reads to what it shall read.

First it gives up what isn't its own any more, and stays at its epoch until it says that it did. Then it gets the
target's epoch, and those partitions of its target that nobody else holds; the others as soon as they are released.
"""

from __future__ import annotations

from collections.abc import Collection

from archiver.serve.groups.consumer.members import ConsumerMember, MemberState, Place


class Holders:
    """Who holds each partition: it is assigned to one member, or that one still has to give it up."""

    def __init__(self) -> None:
        self._holders: dict[Place, str] = {}

    def is_free(self, place: Place) -> bool:
        """Whether nobody holds a partition."""
        return place not in self._holders

    def hold(self, member_id: str, places: Collection[Place]) -> None:
        """Let a member hold partitions, which are free or its own."""
        for each in places:
            assert self._holders.get(each, member_id) == member_id, f"{each} is held by another member"
            self._holders[each] = member_id

    def release(self, places: Collection[Place]) -> None:
        """Let partitions be free."""
        for each in places:
            self._holders.pop(each, None)


def reconcile(
    member: ConsumerMember,
    *,
    epoch: int,
    target: frozenset[Place],
    owned: frozenset[Place] | None,
    holders: Holders,
) -> None:
    """Bring a member as far as it can go. `owned` is what it says that it holds; None says nothing about that."""
    if member.state is MemberState.UNREVOKED and (owned is None or owned & member.revoking):
        return
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return
    holders.release(member.revoking)
    kept = member.assigned & target
    revoking = member.assigned - target
    member.assigned, member.revoking = kept, frozenset()
    if revoking and (owned is None or owned & revoking):
        member.revoking = revoking
        member.state = MemberState.UNREVOKED
        return
    holders.release(revoking)
    free = frozenset(each for each in target - kept if holders.is_free(each))
    holders.hold(member.member_id, free)
    member.assigned = kept | free
    member.since = {each: member.since.get(each, epoch) for each in member.assigned}
    member.state = MemberState.STABLE if member.assigned == target else MemberState.UNRELEASED
    if member.epoch != epoch:
        member.previous_epoch, member.epoch = member.epoch, epoch
