"""Compare archived partitions with their logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from archiver.kafka.broker import BrokerClient, PartitionDescription
from archiver.kafka.fetch import log_reader
from archiver.topics.continuity import NEWEST_BYTES, Continuity
from archiver.topics.log_bounds import LogBounds
from archiver.topics.readable_log import ReadableLog
from archiver.topics.seen_partition import SeenPartition
from archiver.topics.start_offsets import StartFrom, StartOffsets
from catalog.model import PartitionOffset, TopicRow, TranslatedRange
from catalog.registry import Registry
from schema_mapping.errors import ContextError

if TYPE_CHECKING:
    from archiver.topics.archive_reader import ArchiveReader


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedPartition:
    """With a `problem`, `seen` doesn't judge the log."""

    seen: SeenPartition
    problem: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInspector:
    """`topic` is None before registration.

    `archived` opens the archive, only to compare. `proven` is the memory of `Continuity`. `keeps=False` leaves
    the registry unchanged.
    """

    name: str
    topic_id: UUID | None
    topic: TopicRow | None
    start_from: StartFrom
    brokers: BrokerClient
    registry: Registry
    archived: Callable[[], ArchiveReader]
    proven: MutableMapping[int, PartitionOffset] = field(default_factory=dict)
    keeps: bool = True

    def inspect(
        self,
        bounds: LogBounds,
        described: Mapping[int, PartitionDescription],
        known: Mapping[int, PartitionOffset],
        missing: Sequence[TranslatedRange] = (),
    ) -> dict[int, InspectedPartition]:
        """Raises SourceError and RegistryError if nothing can be said of any partition."""
        topic = self.topic
        starts = StartOffsets(
            topic=topic,
            name=self.name,
            start_from=self.start_from,
            brokers=self.brokers,
            remembered=self.registry.starts,
            keeps=self.keeps,
        ).of(bounds.new(known, described), is_first=not known)
        continuity = Continuity(
            self.name,
            epochs=self.brokers,
            log=ReadableLog(
                log_reader(self.brokers, self.name, self.topic_id, max_bytes=NEWEST_BYTES),
                lambda: self.registry.files.lost_ranges(topic) if topic is not None else {},
            ),
            archived=self.archived,
            starts=lambda: self.registry.starts.decide(topic) if topic is not None else {},
            proven=self.proven,
        )
        inspected: dict[int, InspectedPartition] = {}
        for partition in bounds.starts:
            seen = bounds.seen(partition, known.get(partition), starts.get(partition), missing=missing)
            try:
                answer = bounds.epoch_ends.get(partition)
                judged = continuity.judged(seen, answer, has_id=self.topic_id is not None)
            except ContextError as error:
                inspected[partition] = InspectedPartition(seen=seen, problem=error)
            else:
                inspected[partition] = InspectedPartition(seen=judged)
        return inspected
