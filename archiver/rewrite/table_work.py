"""The connections of a job that changes one topic's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.audit.trail import AuditTrail
from archiver.config import Config
from archiver.storage.journal import Journal, TableJournal
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    registry: Registry
    catalog: TableCatalog
    manifests: ManifestReader
    journal: TableJournal

    @classmethod
    def of(cls, config: Config, table: ArchiveTable, registry: Registry, catalog: TableCatalog) -> Self:
        return cls(
            registry=registry,
            catalog=catalog,
            manifests=ManifestReader(cache=PlanCache.below(config.archive.spool)),
            journal=Journal.of(config).of_table(table),
        )

    def trail(self, topic: TopicRow) -> AuditTrail:
        return AuditTrail(topic=topic, journal=self.journal, registry=self.registry)
