"""An archived topic as upkeep finds it: its row in the registry and its table, without asking Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.errors import ConfigError, NotArchived
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


def known_topics(config: Config, topics: Sequence[str], registry: Registry) -> tuple[TopicRow, ...]:
    """The rows of these topics, or of all that the registry knows and the configuration speaks for; NotArchived."""
    known = {(row.topic, row.table): row for row in registry.topics()}
    if not topics:
        return tuple(row for (name, table), row in known.items() if _table_of(config, name) == table)
    found = []
    for name in topics:
        table = config.topic(name).table
        if (name, table) not in known:
            raise NotArchived("the topic is not archived yet: run `archiver archive` for it", topic=name, table=table)
        found.append(known[name, table])
    return tuple(found)


def _table_of(config: Config, topic: str) -> str | None:
    try:
        return config.topic(topic).table
    except ConfigError:  # no section speaks for it
        return None
