"""What work on one topic's table needs besides the table: registry, catalog, manifests and journal."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.archive.table_files import ManifestReader
from archiver.audit.trail import AuditTrail
from archiver.storage.journal import TableJournal
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

    def trail(self, topic: TopicRow) -> AuditTrail:
        """Return the audit trail of the table."""
        return AuditTrail.of(topic, self.journal, self.registry)
