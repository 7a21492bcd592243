"""Where archives begin: decided once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from archiver.kafka.broker import EpochEnd
from archiver.kafka.leaders import PartitionDescription
from archiver.topics.start_offsets import NewPartitions, StartFrom, StartOffsets
from catalog.model import TopicRow

TOPIC = TopicRow(id=1, cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")


@dataclass
class Remembered:
    decided: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)

    def decide(
        self, topic: TopicRow, decided: Mapping[int, int] | None = None, *, pending: Mapping[int, int] | None = None
    ) -> dict[int, int]:
        self.waiting = {**(pending or {}), **self.waiting}
        self.decided = {**(decided or {}), **self.decided}
        return dict(self.decided)

    def pending(self, topic: TopicRow) -> dict[int, int]:
        return dict(self.waiting)

    def first_log_starts(self, topic: TopicRow, seen: Mapping[int, int] | None = None) -> dict[int, int]:
        self.seen = {**(seen or {}), **self.seen}
        return dict(self.seen)


@dataclass
class Leaders:
    ends: dict[tuple[int, int], int] = field(default_factory=dict)
    timed: dict[int, int] = field(default_factory=dict)

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        return {
            partition: EpochEnd(leader_epoch=epoch, end_offset=self.ends[partition, epoch])
            for partition, epoch in epochs.items()
            if (partition, epoch) in self.ends
        }

    def list_offsets(self, topic: str, partitions: Iterable[int], at: Any) -> dict[int, int]:
        return {partition: self.timed[partition] for partition in partitions}


def starts(registry: Remembered, start_from: StartFrom, leaders: Leaders | None = None, **changes: Any) -> StartOffsets:
    options: dict[str, Any] = {"topic": TOPIC, "name": "orders", "start_from": start_from} | changes
    return StartOffsets(brokers=leaders or Leaders(), remembered=registry, **options)  # type: ignore[arg-type]


def new(bounds: dict[int, tuple[int, int]], **leaderless: int) -> NewPartitions:
    return NewPartitions(
        log_starts={partition: start for partition, (start, _) in bounds.items()},
        log_ends={partition: end for partition, (_, end) in bounds.items()},
        leaderless={
            int(name[1:]): PartitionDescription(leader=None, leader_epoch=epoch) for name, epoch in leaderless.items()
        },
    )


def test_latest_is_decided_at_the_first_look() -> None:
    registry = Remembered()
    assert starts(registry, "latest").of(new({0: (0, 50), 1: (5, 9)}), is_first=True) == {0: 50, 1: 9}
    later = new({0: (0, 70), 1: (5, 90), 2: (0, 3)})
    assert starts(registry, "latest").of(later, is_first=True) == {0: 50, 1: 9, 2: 0}, (
        "2 was added: it is new as a whole"
    )


def test_latest_without_leader_is_the_end_of_its_epoch() -> None:
    registry, leaders = Remembered(), Leaders(ends={(1, 4): 1_000})
    assert starts(registry, "latest", leaders).of(new({0: (0, 50)}, p1=4), is_first=True) == {0: 50}
    assert registry.waiting == {1: 4}
    back = new({0: (0, 60), 1: (0, 1_007)})
    for is_first in (True, False):
        assert starts(registry, "latest", leaders).of(back, is_first=is_first) == {0: 50, 1: 1_000}
    assert registry.decided == {0: 50, 1: 1_000}


def test_latest_where_no_partition_had_a_leader() -> None:
    registry, leaders = Remembered(), Leaders(ends={(0, 4): 10})
    assert starts(registry, "latest", leaders).of(new({}, p0=4), is_first=True) == {}
    assert starts(registry, "latest", leaders).of(new({0: (0, 17), 1: (0, 5)}), is_first=True) == {0: 10, 1: 0}


def test_uncertain_start_is_early_rather_than_late() -> None:
    for epoch in (-1, 4):
        registry = Remembered()
        starts(registry, "latest").of(new({0: (0, 50)}, p1=epoch), is_first=True)
        assert starts(registry, "latest").of(new({0: (0, 50), 1: (3, 90)}), is_first=True) == {0: 50, 1: 3}


def test_a_time_means_for_a_late_leader_what_it_meant_then() -> None:
    registry, leaders = Remembered(), Leaders(ends={(1, 4): 40, (2, 4): 40}, timed={0: 7, 1: 12, 2: 45})
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert starts(registry, moment, leaders).of(new({0: (0, 50)}, p1=4, p2=4), is_first=True) == {0: 7}
    back = new({0: (0, 50), 1: (0, 60), 2: (0, 60)})
    assert starts(registry, moment, leaders).of(back, is_first=True) == {0: 7, 1: 12, 2: 40}


def test_the_start_of_a_log_is_remembered_from_the_first_look() -> None:
    registry = Remembered()
    assert starts(registry, "earliest").of(new({0: (5, 50)}), is_first=True) == {0: 5}
    assert starts(registry, "earliest").of(new({0: (20, 50), 1: (2, 2)}), is_first=True) == {0: 5, 1: 2}


def test_a_look_that_changes_nothing_keeps_nothing() -> None:
    registry = Remembered()
    looking = starts(registry, "latest", keeps=False)
    assert looking.of(new({0: (0, 50)}, p1=4), is_first=True) == {0: 50}
    assert starts(registry, "earliest", keeps=False).of(new({0: (5, 50)}), is_first=True) == {0: 5}
    assert starts(registry, "latest", topic=None, keeps=False).of(new({0: (0, 50)}), is_first=True) == {0: 50}
    assert registry == Remembered()
