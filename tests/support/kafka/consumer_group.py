"""A self-assigning group with a clock and topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.serve.groups.consumer import (
    Beat,
    Beaten,
    ConsumerGroup,
    ConsumerState,
    GroupTimes,
    KnownTopic,
    PartitionId,
    Topics,
)

OK = ErrorCode.none
TIMES = GroupTimes(interval=1.0, session=10.0)
REBALANCE = 20.0
ORDERS, REFUNDS = UUID(int=1), UUID(int=2)


def topics(**partitions: int) -> Topics:
    ids = {"orders": ORDERS, "refunds": REFUNDS}
    return {name: KnownTopic(ids[name], count) for name, count in partitions.items()}


def places(topic: UUID, *numbers: int) -> frozenset[PartitionId]:
    return frozenset((topic, number) for number in numbers)


@dataclass(slots=True)
class Course:
    topics: Topics = field(default_factory=lambda: topics(orders=4))
    group: ConsumerGroup = field(default_factory=lambda: ConsumerGroup("g", TIMES))
    now: float = 0.0

    def beat(self, member_id: str, epoch: int, **values: Any) -> Beaten:
        return self.group.beat(self.now, Beat(member_id=member_id, epoch=epoch, **values), self.topics)

    def join(self, member_id: str, **changes: Any) -> Beaten:
        values: dict[str, Any] = {
            "rebalance_seconds": REBALANCE,
            "names": frozenset({"orders"}),
            "owned": frozenset(),
            **changes,
        }
        return self.beat(member_id, 0, **values)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.group.deadline() <= until:
            self.now = max(self.now, self.group.deadline())
            self.group.tick(self.now)
        self.now = until

    def two(self) -> None:
        self.beat("a", 1, owned=self.join("a").assigned)
        self.join("b")
        kept = self.beat("a", 1).assigned
        assert kept is not None
        self.beat("a", 1, owned=kept)
        self.beat("b", 2, owned=self.beat("b", 2).assigned)
        assert self.group.state is ConsumerState.STABLE
