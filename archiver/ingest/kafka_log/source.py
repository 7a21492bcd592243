"""Reads the ranges of tasks from a Kafka cluster. The value pickles, and connects only in the worker that fetches."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from archiver.ingest.plan.ranges import PlannedRange
from archiver.kafka.fetch import PartitionFetcher
from archiver.kafka.shared_clients import client_for
from archiver.wire.columns import DecodedBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """A RangeSource: a topic of the cluster that `options` (librdkafka's names) lead to."""

    options: Mapping[str, str] = field(repr=False)
    topic: str
    topic_id: UUID | None

    def batches(self, planned: PlannedRange) -> Generator[DecodedBatches]:
        """Decoded pieces of the range; the next one is fetched while the caller works on this one."""
        with client_for(self.options, self.topic) as client:
            fetcher = PartitionFetcher(client, self.topic, self.topic_id, planned.partition)
            yield from fetcher.batches(
                planned.start_offset, planned.end_offset, cut_head=planned.owns_head, last_epoch=planned.last_epoch
            )
