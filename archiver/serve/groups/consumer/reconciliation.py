"""A member's steps to its target.

It first revokes, keeping its epoch until it confirms, then gets free partitions.
"""

from __future__ import annotations

from collections.abc import Collection

from archiver.serve.groups.consumer.members import ConsumerMember, MemberState, PartitionId


class HeldPlaces:
    def __init__(self) -> None:
        self._held: set[PartitionId] = set()

    def is_free(self, partition: PartitionId) -> bool:
        return partition not in self._held

    def hold(self, partitions: Collection[PartitionId]) -> None:
        assert self._held.isdisjoint(partitions), "a partition is held by another member"
        self._held.update(partitions)

    def release(self, partitions: Collection[PartitionId]) -> None:
        self._held.difference_update(partitions)


def reconcile(
    member: ConsumerMember,
    *,
    epoch: int,
    target: frozenset[PartitionId],
    owned: frozenset[PartitionId] | None,
    held: HeldPlaces,
) -> None:
    """`owned` None: not reported."""
    if member.state is MemberState.UNREVOKED and (owned is None or owned & member.revoking):
        return
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return
    held.release(member.revoking)
    kept = member.assigned & target
    revoking = member.assigned - target
    if owned is None and not revoking <= member.owned:
        member.revoking, member.state = frozenset(), MemberState.UNHEARD
        return
    member.assigned, member.revoking = kept, frozenset()
    if revoking and (owned is None or owned & revoking):
        member.revoking = revoking
        member.state = MemberState.UNREVOKED
        return
    held.release(revoking)
    free = frozenset(partition for partition in target - kept if held.is_free(partition))
    held.hold(free)
    member.assigned = kept | free
    member.since = {partition: member.since.get(partition, epoch) for partition in member.assigned}
    member.state = MemberState.STABLE if member.assigned == target else MemberState.UNRELEASED
    if member.epoch != epoch:
        member.previous_epoch, member.epoch = member.epoch, epoch
