"""The state of topics that Flight clients fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from archiver.config import TopicConfig
from archiver.topics.archived_state import ArchivedState
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.state import PartitionStatus, TopicStatus
from catalog.registry import Registry
from catalog.registry.intake_logs import IntakeLogRow

FLIGHT_CLUSTER: Final = "flight"
"""The cluster id of topics that don't come from Kafka."""


class FilledState:
    """Rows in write-ahead logs are as last reported."""

    def __init__(self, *, registry: Registry, catalogs: CatalogPool) -> None:
        self._registry = registry
        self._archived = ArchivedState(registry=registry, catalogs=catalogs)

    def topics(self, configs: Sequence[TopicConfig]) -> list[TopicStatus]:
        """Unreadable tables are problems of their topics, never raised."""
        tables = {config.name: config.table for config in configs}
        rows = [
            row
            for row in self._registry.topics.every()
            if row.cluster_id == FLIGHT_CLUSTER and tables.get(row.topic) == row.table
        ]
        logs = self._registry.intake.of_topics(rows) if rows else {}
        by_topic = {row.topic: logs[row.id] for row in rows if row.id in logs}
        registered = {row.topic for row in rows}
        archived = self._archived.topics([config for config in configs if config.name in registered])
        statuses = {status.topic: status for status in archived}
        return [
            filled_status(
                statuses.get(config.name, TopicStatus(topic=config.name, table=config.table)),
                by_topic.get(config.name),
                partitions=config.partitions or 0,
            )
            for config in configs
        ]


def filled_status(status: TopicStatus, log: IntakeLogRow | None, *, partitions: int) -> TopicStatus:
    """Without a log, a topic without rows is up to date."""
    by_number: Mapping[int, PartitionStatus] = {partition.partition: partition for partition in status.partitions}
    ends = log.next_offsets if log is not None else dict.fromkeys(range(partitions), 0) if not by_number else {}
    return replace(
        status,
        partitions=tuple(
            _with_end(by_number.get(number, PartitionStatus(partition=number)), ends.get(number, 0 if log else None))
            for number in sorted({*by_number, *ends, *range(partitions)})
        ),
        log=log,
    )


def _with_end(partition: PartitionStatus, end: int | None) -> PartitionStatus:
    """A report may be older than the table."""
    if end is None:
        return replace(partition, lag_records=None)
    reached = partition.archived_to or 0
    end = max(end, reached, partition.staged_to or 0)
    return replace(partition, high_watermark=end, last_stable=end, lag_records=end - reached)
