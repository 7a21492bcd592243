"""Carry the offsets of consumer groups over to the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from archiver.errors import ArchiverError, ConfigError, UpkeepError
from archiver.kafka.admin import ClusterAdmin
from archiver.kafka.broker import BrokerClient
from archiver.kafka.fetch import log_reader
from archiver.kafka.group_offsets import CommittedOffset, committed_offsets
from archiver.republish.offset_map import PlacesInTarget
from archiver.republish.progress_log import ProgressLog
from archiver.republish.report import GroupReport
from archiver.wire.columns import DecodedBatches

ALL: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTranslation:
    """Carries groups over from `topic` to `target`.

    Groups that are further, or have yet to read older records, stay there. Groups with members in the target are
    left alone.
    """

    source: ClusterAdmin
    source_brokers: BrokerClient
    topic: str
    destination: ClusterAdmin
    destination_brokers: BrokerClient
    target: str
    partitions: tuple[int, ...]
    committed: Callable[..., Mapping[int, CommittedOffset]] = committed_offsets
    reader: Callable[..., Callable[[int, int, int], Iterator[DecodedBatches]]] = log_reader

    def names(self, asked: Iterable[str]) -> tuple[str, ...]:
        """`all` means each group with an offset of the source topic. Raises ConfigError."""
        selected = tuple(dict.fromkeys(asked))
        if ALL in selected and len(selected) > 1:
            raise ConfigError(f"--translate-groups takes names of groups, or `{ALL}`, not both", found=selected)
        return self.source.groups() if selected == (ALL,) else selected

    def run(self, asked: Iterable[str], log: ProgressLog) -> tuple[GroupReport, ...]:
        everyone = ALL in tuple(asked)
        committed = {
            group: self.committed(self.source_brokers, group, self.topic, self.partitions)
            for group in self.names(asked)
        }
        selected: dict[int, set[int]] = {partition: set() for partition in self.partitions}
        for offsets in committed.values():
            for partition, entry in offsets.items():
                selected[partition].add(entry.offset)
        ends = self.destination_brokers.list_offsets(self.target, self.partitions, "latest_stable")
        places = PlacesInTarget({partition: frozenset(offsets) for partition, offsets in selected.items()}, ends)
        places.read(log.entries())
        return tuple(
            self._carried(group, offsets, places) for group, offsets in committed.items() if offsets or not everyone
        )

    def _carried(self, group: str, offsets: Mapping[int, CommittedOffset], places: PlacesInTarget) -> GroupReport:
        if not offsets:
            problem = UpkeepError(
                "the group has committed no offset of the source topic: check its name, and the cluster in [kafka]",
                group=group,
                topic=self.topic,
            )
            return GroupReport(group=group, moved={}, problem=problem)
        positions = {partition: places.of(partition, item.offset) for partition, item in offsets.items()}
        waiting = tuple(sorted(partition for partition, position in positions.items() if position is None))
        try:
            stored = self.committed(self.destination_brokers, group, self.target, positions)
            further = {
                partition: position
                for partition, position in positions.items()
                if position is not None and (partition not in stored or stored[partition].offset < position)
            }
            behind = tuple(
                sorted(
                    item
                    for item in further
                    if item in stored and self._has_records(item, stored[item].offset, places.first(item))
                )
            )
            fresh = {
                partition: CommittedOffset(offset=position, metadata=offsets[partition].metadata)
                for partition, position in further.items()
                if partition not in behind
            }
            ahead = tuple(sorted(item for item, old in stored.items() if (positions.get(item) or 0) < old.offset))
            if fresh:
                self._check_idle(group)
                self.destination.commit(group, self.target, fresh)
        except ArchiverError as problem:
            return GroupReport(group=group, moved={}, waiting=waiting, problem=problem)
        moved = {partition: item.offset for partition, item in sorted(fresh.items())}
        return GroupReport(group=group, moved=moved, ahead=ahead, waiting=waiting, behind=behind)

    def _has_records(self, partition: int, start: int, end: int) -> bool:
        """Aborted records leave only a gap."""
        start = max(start, self.destination_brokers.list_offsets(self.target, (partition,), "earliest")[partition])
        if start >= end:
            return False
        topic_id = self.destination_brokers.described(self.target).topic_id
        read = self.reader(self.destination_brokers, self.target, topic_id)
        return any(piece.records.num_rows for piece in read(partition, start, end))

    def _check_idle(self, group: str) -> None:
        if self.destination.is_active(group):
            raise UpkeepError(
                "the group has members in the target's cluster, and only they may commit its offsets: stop them, and "
                "run the same command again",
                group=group,
            )
