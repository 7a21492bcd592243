"""Read the ranges of tasks from Kafka. The value pickles and connects only in the worker."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from uuid import UUID

from archiver.ingest.kafka_log.reading import KafkaReading
from archiver.ingest.plan.ranges import PlannedRange
from archiver.kafka.fetch import PartitionFetcher
from archiver.kafka.shared_clients import client_for, sharing_clients
from archiver.wire.columns import DecodedBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """A LogSource. `options` have librdkafka's names."""

    options: Mapping[str, str] = field(repr=False)
    topic: str
    topic_id: UUID | None

    def read(self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float) -> KafkaReading:
        return KafkaReading(self.batches(planned), planned, plan_time_ms=plan_time_ms, budget_seconds=budget_seconds)

    def batches(self, planned: PlannedRange) -> Generator[DecodedBatches]:
        """Decoded pieces; the next is fetched during the caller's work.

        Raises SourceError and CorruptBatch if the rest can't be read.
        """
        with client_for(self.options, self.topic) as client:
            fetcher = PartitionFetcher(client, self.topic, self.topic_id, planned.partition)
            yield from fetcher.batches(
                planned.start_offset,
                planned.end_offset,
                cut_head=planned.owns_head,
                last_epoch=planned.epochs.at_leader,
            )

    @classmethod
    def sharing(cls, sources: Iterable[KafkaSource]) -> AbstractContextManager[None]:
        """Share clients among sources read in sequence."""
        return sharing_clients((source.options, source.topic) for source in sources)
