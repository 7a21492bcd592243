"""The source of tasks that run against a real cluster: a value that connects only where the fetching is done."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from archiver.ingest.plan.ranges import PlannedRange
from archiver.kafka.fetch import PartitionFetcher
from archiver.wire.columns import DecodedBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """A RangeSource: the topic as the brokers of `options` (librdkafka's names) have it."""

    options: Mapping[str, str] = field(repr=False)
    topic: str
    topic_id: UUID | None

    def batches(self, planned: PlannedRange) -> Generator[DecodedBatches]:
        """Decoded pieces of the range, the next one fetched while one is worked on."""
        with PartitionFetcher(self.options, self.topic, self.topic_id, planned.partition) as fetcher:
            yield from fetcher.batches(
                planned.start_offset, planned.end_offset, cut_head=planned.owns_head, last_epoch=planned.last_epoch
            )
