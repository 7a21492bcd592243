"""An archived topic for upkeep: its row in the registry and its table. Kafka is not asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archiver.commit.lacking_ranges import add_lacking_ranges
from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.errors import NotArchived
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTopic:
    """A topic with its loaded table."""

    config: TopicConfig
    topic: TopicRow
    table: ArchiveTable

    @property
    def objects(self) -> ObjectStore:
        """The object store with the credentials that the catalog gave for the table."""
        return ObjectStore.of_table(self.table.iceberg)


def find_archived(config: Config, name: str, *, registry: Registry, catalog: TableCatalog) -> ArchivedTopic:
    """Find the topic's archive. NotArchived if there is none yet; subclasses of TableError and StorageError.

    Ranges that the registry lacks since its database was restored from an older backup are added. RegistryBehind if it
    knows another table, or if nothing says which ranges it lacks.
    """
    (known,) = known_topics(config, (name,), registry)
    table = catalog.load(known)
    if table is None:
        raise not_archived(name, known.table)
    registry.ledger.check_table(known, table)
    add_lacking_ranges(table, registry, Journal.of(config).of_table(table))
    return ArchivedTopic(config=config.topic(name), topic=known, table=table)


def known_topics(config: Config, topics: Sequence[str], registry: Registry) -> tuple[TopicRow, ...]:
    """The rows of these topics. NotArchived where the registry lacks one.

    Without `topics`: all topics that the registry knows and the configuration has.
    """
    known = {(row.topic, row.table): row for row in registry.topics.every()}
    if not topics:
        return tuple(row for (name, table), row in known.items() if config.table_of(name) == table)
    found = []
    for name in topics:
        table = config.topic(name).table
        if (name, table) not in known:
            raise not_archived(name, table)
        found.append(known[name, table])
    return tuple(found)


def not_archived(topic: str, table: str) -> NotArchived:
    """The error for a topic without an archive."""
    return NotArchived("the topic is not archived yet: run `archiver archive` for it", topic=topic, table=table)
