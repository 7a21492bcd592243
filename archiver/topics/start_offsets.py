"""The first offset of a partition never archived, decided once (docs/concepts.md, step 1).

Partitions added later begin with their log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from archiver.kafka.broker import BrokerClient
from archiver.kafka.leaders import PartitionDescription
from catalog.model import TopicRow

StartFrom: TypeAlias = Literal["earliest", "latest"] | datetime


class RememberedStarts(Protocol):
    def decide(
        self, topic: TopicRow, decided: Mapping[int, int] | None = None, *, pending: Mapping[int, int] | None = None
    ) -> dict[int, int]:
        """Store `decided` for partitions without a start; return all."""

    def pending(self, topic: TopicRow) -> dict[int, int]:
        """Leader epochs that had ended when partitions had no leader."""

    def first_log_starts(self, topic: TopicRow, seen: Mapping[int, int] | None = None) -> dict[int, int]:
        """Store `seen` for partitions without one; return all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    log_starts: Mapping[int, int]
    log_ends: Mapping[int, int]
    leaderless: Mapping[int, PartitionDescription]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOffsets:
    """`topic` is None if unregistered. `keeps=False` changes nothing."""

    topic: TopicRow | None
    name: str
    start_from: StartFrom
    brokers: BrokerClient
    remembered: RememberedStarts
    keeps: bool = True

    def of(self, new: NewPartitions, *, is_first: bool) -> dict[int, int]:
        """Only partitions with a leader. `is_first` if nothing of the topic is archived."""
        configured = self._configured(new, is_first=is_first) if self.start_from != "earliest" else {}
        whole = {partition: start for partition, start in new.log_starts.items() if partition not in configured}
        if whole and self.topic is not None:
            seen = self.remembered.first_log_starts(self.topic)
            if self.keeps and whole.keys() - seen.keys():
                seen = self.remembered.first_log_starts(self.topic, whole)
            whole = {partition: seen.get(partition, start) for partition, start in whole.items()}
        return {**whole, **{partition: start for partition, start in configured.items() if partition in new.log_starts}}

    def _configured(self, new: NewPartitions, *, is_first: bool) -> dict[int, int]:
        decided, pending = self._remembered()
        if is_first and not decided and not pending:
            return self._kept(
                self._now(new.log_ends),
                {partition: description.leader_epoch for partition, description in new.leaderless.items()},
            )
        late = {
            partition: epoch
            for partition, epoch in pending.items()
            if partition in new.log_starts and partition not in decided
        }
        return self._kept(self._late(late, new), {}) if late else decided

    def _remembered(self) -> tuple[dict[int, int], dict[int, int]]:
        if self.topic is None:
            return {}, {}
        return self.remembered.decide(self.topic), self.remembered.pending(self.topic)

    def _kept(self, decided: Mapping[int, int], pending: Mapping[int, int]) -> dict[int, int]:
        if self.topic is None:
            return dict(decided)
        if self.keeps:
            return self.remembered.decide(self.topic, decided, pending=pending)
        return {**decided, **self.remembered.decide(self.topic)}

    def _now(self, ends: Mapping[int, int]) -> dict[int, int]:
        """Log ends, or the first record at or after the time."""
        if self.start_from == "earliest" or not ends:
            return {}
        if self.start_from == "latest":
            return dict(ends)
        offsets = self.brokers.list_offsets(self.name, ends, int(self.start_from.timestamp() * 1000))
        return {partition: min(offset, ends[partition]) for partition, offset in offsets.items()}

    def _late(self, epochs: Mapping[int, int], new: NewPartitions) -> dict[int, int]:
        """While no leader existed: the epoch's end, or the log start if unknown."""
        asked = {partition: epoch for partition, epoch in epochs.items() if epoch >= 0}
        answers = self.brokers.end_of_epoch(self.name, asked) if asked else {}
        ends = {
            epoch: max(answers[epoch].end_offset, new.log_starts[epoch]) if epoch in answers else new.log_starts[epoch]
            for epoch in epochs
        }
        return self._now(ends)
