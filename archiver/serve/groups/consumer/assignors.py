"""Assignors: each partition goes to one of its topic's subscribers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from archiver.serve.groups.consumer.members import PartitionId

Subscriptions: TypeAlias = Mapping[str, frozenset[UUID]]
"""The topics that each member wants. Members come in an order that lasts."""
Targets: TypeAlias = Mapping[str, frozenset[PartitionId]]
"""The partitions of each member."""
Assignor: TypeAlias = Callable[[Subscriptions, Mapping[UUID, int], Targets], dict[str, frozenset[PartitionId]]]
"""Assign partitions. Arguments: the topics of each member, the partitions of each topic, the previous targets."""

_UNEVEN: Final = 2
"""A member with this many partitions more than another gives one to it."""


def uniform(
    wanted: Subscriptions, partitions: Mapping[UUID, int], previous: Targets
) -> dict[str, frozenset[PartitionId]]:
    """Spread partitions evenly, with few moves. With equal subscriptions, counts differ by at most one."""
    readers = _readers(wanted, partitions)
    holdings = _Holdings(wanted, readers)
    free = {topic: set(range(partitions[topic])) for topic in readers}
    for member, kept_partitions in previous.items():
        for topic, number in sorted(kept_partitions):
            if topic in wanted.get(member, ()) and number in free.get(topic, ()):
                free[topic].remove(number)
                holdings.give(member, topic, number)
    for topic in sorted(readers, key=lambda topic_id: (len(readers[topic_id]), topic_id)):
        holdings.fill(topic, sorted(free[topic]))
    while any([holdings.even_out(topic) for topic in readers]):  # noqa: C419 - each topic has its turn
        pass
    return holdings.targets()


def in_ranges(
    wanted: Subscriptions, partitions: Mapping[UUID, int], _previous: Targets
) -> dict[str, frozenset[PartitionId]]:
    """Ranges are aligned across topics with the same subscribers."""
    assigned: dict[str, set[PartitionId]] = {member: set() for member in wanted}
    for topic, members in _readers(wanted, partitions).items():
        share, more = divmod(partitions[topic], len(members))
        start = 0
        for rank, member in enumerate(members):
            end = start + share + (rank < more)
            assigned[member].update((topic, number) for number in range(start, end))
            start = end
    return {member: frozenset(kept_partitions) for member, kept_partitions in assigned.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": in_ranges}
"""The assignors by their names. The first is the default."""


def _readers(wanted: Subscriptions, partitions: Mapping[UUID, int]) -> dict[UUID, list[str]]:
    readers: dict[UUID, list[str]] = {}
    for member, topics in wanted.items():
        for topic in topics:
            if topic in partitions:
                readers.setdefault(topic, []).append(member)
    return {topic: readers[topic] for topic in sorted(readers)}


class _Holdings:
    def __init__(self, members: Iterable[str], readers: Mapping[UUID, list[str]]) -> None:
        self._readers = readers
        self._of: dict[UUID, dict[str, list[int]]] = {topic: {} for topic in readers}
        self._counts = dict.fromkeys(members, 0)

    def give(self, member: str, topic: UUID, number: int) -> None:
        self._of[topic].setdefault(member, []).append(number)
        self._counts[member] += 1

    def fill(self, topic: UUID, numbers: Iterable[int]) -> None:
        heap = [(self._counts[member], rank, member) for rank, member in enumerate(self._readers[topic])]
        heapq.heapify(heap)
        for number in numbers:
            count, rank, member = heap[0]
            self.give(member, topic, number)
            heapq.heapreplace(heap, (count + 1, rank, member))

    def even_out(self, topic: UUID) -> bool:
        holders = self._of[topic]
        moved = False
        while True:
            most = max((member for member, numbers in holders.items() if numbers), key=self._count, default=None)
            least = min(self._readers[topic], key=self._count)
            if most is None or self._counts[most] - self._counts[least] < _UNEVEN:
                return moved
            number = holders[most].pop()
            self._counts[most] -= 1
            self.give(least, topic, number)
            moved = True

    def targets(self) -> dict[str, frozenset[PartitionId]]:
        assigned: dict[str, set[PartitionId]] = {member: set() for member in self._counts}
        for topic, holders in self._of.items():
            for member, numbers in holders.items():
                assigned[member].update((topic, number) for number in numbers)
        return {member: frozenset(kept_partitions) for member, kept_partitions in assigned.items()}

    def _count(self, member: str) -> int:
        return self._counts[member]
