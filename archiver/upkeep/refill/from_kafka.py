"""Archive lost ranges again from Kafka, as far as the log has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.errors import DataLoss, UpkeepError
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.values import TaskResult, TranslateTask
from archiver.ingest.task.work import translate_range
from archiver.ingest.topic.target import target_of
from archiver.kafka.broker import BrokerClient
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.journal import Journal
from archiver.storage.segment import SegmentFormat
from archiver.topics.opening import RegisteredTopic, TopicServers, for_records, open_topic
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, TranslatedRange
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_NO_LIMIT: Final = 1e9
"""Seconds that a task may take: enough to read its range to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefetchedFiles:
    """`error` stopped the task early. The last batch may extend beyond the range."""

    ranges: tuple[TranslatedRange, ...] = ()
    error: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FromKafka:
    fetched: dict[str, RefetchedFiles]
    change: SchemaChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRefetcher:
    """`engine` is called only if there is something to fetch."""

    config: Config
    topic: TopicRow
    registry: Registry
    catalog: TableCatalog
    engine: Callable[[], Engine]
    format: SegmentFormat

    def fetch(self, wanted: Sequence[TranslatedRange]) -> FromKafka:
        """Raise SourceError, SchemaRegistryError and ConfigError."""
        name, settings = self.topic.topic, self.config.topic(self.topic.topic)
        with BrokerClient(self.config.kafka) as brokers:
            self._check_cluster(brokers)
            schemas = TopicSchemas.read_or_recall(
                settings, self.config.schema_registry, known=self.topic, registry=self.registry
            )
            opened = open_topic(
                schemas,
                brokers.describe([name])[name],
                RegisteredTopic(row=self.topic),
                TopicServers(registry=self.registry, catalog=self.catalog, journal=Journal.of(self.config)),
                cluster_id=self.topic.cluster_id,
            )
            partitions = sorted({range_.partition for range_ in wanted})
            starts = brokers.list_offsets(name, partitions, "earliest")
            ends = brokers.list_offsets(name, partitions, "latest_stable")
        fetched = {range_.id: RefetchedFiles() for range_ in wanted}
        planned = [
            (range_, span)
            for range_ in wanted
            if (span := _planned(range_, starts[range_.partition], ends[range_.partition])) is not None
        ]
        if planned:
            opened = for_records(opened, self.registry)
            engine = self.engine()
            target = target_of(
                opened,
                settings,
                kafka=self.config.kafka,
                format_=self.format,
                pending_bytes=self.config.archive.partition_memory,
            )
            now_ms = time.time_ns() // 1_000_000
            tasks = [
                TranslateTask(
                    target=target,
                    planned=span,
                    plan_time_ms=now_ms,
                    budget_seconds=_NO_LIMIT,
                    spool=self.config.archive.spool,
                    spool_bytes=self.config.archive.spool_size // engine.slots,
                )
                for _, span in planned
            ]
            for outcome in engine.run_tasks(tasks, translate_range):
                result = outcome.result or TaskResult(ranges=(), error=outcome.error)
                range_ = planned[outcome.index][0]
                fetched[range_.id] = RefetchedFiles(ranges=result.ranges, error=_told(result.error))
        return FromKafka(fetched=fetched, change=opened.change)

    def _check_cluster(self, brokers: BrokerClient) -> None:
        cluster_id = brokers.cluster_id()
        if cluster_id != self.topic.cluster_id:
            raise UpkeepError(
                "these are another cluster's brokers: check bootstrap.servers in [kafka]",
                topic=self.topic.topic,
                archived_cluster_id=self.topic.cluster_id,
                cluster_id=cluster_id,
            )


def _planned(one: TranslatedRange, log_start: int, log_end: int) -> PlannedRange | None:
    start, end = max(one.start_offset, log_start), min(one.end_offset, log_end)
    if start >= end:
        return None
    return PlannedRange(partition=one.partition, start_offset=start, end_offset=end, owns_head=True)


def _told(error: ContextError | None) -> ContextError | None:
    """None if the log has less than the range: the fetched files show that."""
    return None if isinstance(error, DataLoss) else error
