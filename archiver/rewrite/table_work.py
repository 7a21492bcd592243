"""What work on one topic's table needs besides the table: registry, catalog, manifests and journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.audit.trail import AuditTrail
from archiver.config import Config
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.journal_memory import JournalMemory
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """The connections of a job that changes a table. `journal` is the table's."""

    registry: Registry
    catalog: TableCatalog
    manifests: ManifestReader
    journal: TableJournal

    @classmethod
    def of(
        cls,
        config: Config,
        table: ArchiveTable,
        registry: Registry,
        catalog: TableCatalog,
        memory: JournalMemory | None = None,
    ) -> Self:
        """Return what work on this table needs, with manifests that are read once for each spool."""
        return cls(
            registry=registry,
            catalog=catalog,
            manifests=ManifestReader(cache=PlanCache.below(config.archive.spool)),
            journal=Journal.of(config, memory).of_table(table),
        )

    def trail(self, topic: TopicRow) -> AuditTrail:
        """Return the audit trail of the table."""
        return AuditTrail(topic=topic, journal=self.journal, registry=self.registry)
