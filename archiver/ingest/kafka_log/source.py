"""Read the ranges of tasks from Kafka. Connects only in the worker."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from uuid import UUID

from archiver.ingest.kafka_log.reading import KafkaReading
from archiver.ingest.plan.ranges import PlannedRange
from archiver.kafka.broker import BrokerClient
from archiver.kafka.fetch import PartitionFetcher
from archiver.kafka.shared_clients import SharedClients
from archiver.wire.columns import DecodedBatches


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """`options` have librdkafka's names."""

    options: Mapping[str, str] = field(repr=False)
    topic: str
    topic_id: UUID | None

    def read(
        self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float, shared: SharedClients | None = None
    ) -> KafkaReading:
        batches = self.batches(planned, shared)
        return KafkaReading(batches, planned, plan_time_ms=plan_time_ms, budget_seconds=budget_seconds)

    def batches(self, planned: PlannedRange, shared: SharedClients | None = None) -> Generator[DecodedBatches]:
        """Fetches the next piece ahead. Raises SourceError and CorruptBatch."""
        with shared.client(self.options, self.topic) if shared else BrokerClient(self.options) as client:
            fetcher = PartitionFetcher(client, self.topic, self.topic_id, planned.partition)
            yield from fetcher.batches(
                planned.start_offset,
                planned.end_offset,
                cut_head=planned.owns_head,
                last_epoch=planned.epochs.at_leader,
            )

    @classmethod
    def sharing(cls, sources: Iterable[KafkaSource]) -> AbstractContextManager[SharedClients]:
        return SharedClients((source.options, source.topic) for source in sources)
