"""An archived topic: its registry row and its table. Makes no Kafka requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.commit.lacking_ranges import add_lacking_ranges
from archiver.commit.registry_lag import lacking_offsets, registry_behind
from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.config.topics import near_topic
from archiver.errors import NotArchived
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry

_DRY_RUN: Final = (
    "A dry run writes nothing: run `archiver archive` first, which adds their ranges from journal and footers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTopic:
    config: TopicConfig
    topic: TopicRow
    table: ArchiveTable

    @property
    def objects(self) -> ObjectStore:
        """With the credentials that the catalog vended for the table."""
        return ObjectStore.of_table(self.table.iceberg)


def find_archived(
    config: Config, name: str, *, registry: Registry, catalog: TableCatalog, dry_run: bool = False
) -> ArchivedTopic:
    """Find the archive; add ranges that a restored registry lacks, unless `dry_run`.

    Raises NotArchived, TableError, StorageError, and RegistryBehind for another table or unknown missing ranges.
    """
    (row,) = known_topics(config, (name,), registry)
    table = catalog.load(row)
    if table is None:
        raise not_archived(name, row.table)
    registry.ledger.check_table(row, table)
    if not dry_run:
        add_lacking_ranges(table, registry, Journal.of(config).of_table(table))
    elif lacking := lacking_offsets(table, registry):
        raise registry_behind(table, lacking, advice=_DRY_RUN)
    return ArchivedTopic(config=config.topic(name), topic=row, table=table)


def known_topics(config: Config, topics: Sequence[str], registry: Registry) -> tuple[TopicRow, ...]:
    """Return by default all topics that are registered and configured. Raises NotArchived."""
    registered = {(row.topic, row.table): row for row in registry.topics.every()}
    if not topics:
        return tuple(row for (name, table), row in registered.items() if config.table_of(name) == table)
    selected = []
    for name in topics:
        table = config.topic(name).table
        if (name, table) not in registered:
            raise not_archived(name, table, known=[topic for topic, _ in registered])
        selected.append(registered[name, table])
    return tuple(selected)


def not_archived(topic: str, table: str, *, known: Iterable[str] = ()) -> NotArchived:
    near = near_topic(topic, known)
    return NotArchived(f"the topic is not archived yet: run `archiver archive` for it{near}", topic=topic, table=table)
