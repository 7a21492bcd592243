"""An archived topic as upkeep finds it: its row in the registry and its table, without asking Kafka."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.errors import NotArchived
from archiver.storage.objects import ObjectStore
from catalog.archive_table import ArchiveTable, PartitionSource
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.tables import TableCatalog
from schema_mapping.fixed_columns import FLAT_INGEST_TIMESTAMP_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTopic:
    """A topic with its table as loaded."""

    config: TopicConfig
    topic: TopicRow
    table: ArchiveTable

    @property
    def partition_source(self) -> PartitionSource:
        """Which copy of the ingest timestamp the table is partitioned by; NotOurTable where it is by anything else."""
        return "flat" if self.table.partition_field.source_id == FLAT_INGEST_TIMESTAMP_ID else "nested"

    @property
    def objects(self) -> ObjectStore:
        """The object store with the credentials that the catalog gave for the table."""
        return ObjectStore.of(self.table.io.properties)


def find_archived(config: Config, name: str, *, registry: Registry, catalog: TableCatalog) -> ArchivedTopic:
    """The topic's archive. Raises NotArchived where there is none yet, and the leaves of TableError."""
    settings = config.topic(name)
    known = next((row for row in registry.topics() if (row.topic, row.table) == (name, settings.table)), None)
    table = None if known is None else catalog.load(known)
    if known is None or table is None:
        raise NotArchived(
            "the topic is not archived yet: run `archiver archive` for it", topic=name, table=settings.table
        )
    return ArchivedTopic(config=settings, topic=known, table=table)
