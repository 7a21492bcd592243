"""What the erasures of one topic work with, and how what is staged is brought into the table before them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from archiver.archive.table_files import ManifestReader
from archiver.audit.trail import AuditTrail
from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.errors import TopicBusy
from archiver.observer import ignore
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.journal import Journal, TableJournal
from archiver.upkeep.erase.report import EraseObserver
from archiver.upkeep.reconcile import reconcile
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.deletion_gate import refuse_shared
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry

STAGED_TRIES: Final = 30
STAGED_PAUSE: Final = 2.0
"""How often and how far apart it is looked whether an archiver has committed what was staged."""


def refuse_unerasable(table: ArchiveTable) -> None:
    """Raise FilesShared if the table's owner forbids the deletion of files: erased records would stay in them."""
    refuse_shared(table.properties, table.topic.table, refused="nothing was erased")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErasure:
    """The erasures of one topic, with all that they need."""

    config: Config
    topic: TopicRow
    table: ArchiveTable
    registry: Registry
    catalog: TableCatalog
    manifests: ManifestReader
    engine: Callable[[int], Engine]
    observer: EraseObserver = ignore
    formats: SegmentFormats = FORMATS

    def settle(self, ends: Mapping[int, int]) -> None:
        """Have everything staged below these offsets committed, by the archiver at work or by us.

        TopicBusy (retryable) where that takes too long.
        """
        for attempt in range(STAGED_TRIES):
            pending = self.registry.files.pending(self.topic)
            waiting = [one for one in pending if one.start_offset < ends.get(one.partition, 0)]
            if not waiting:
                settle_rewrites(self.on(self.table), self.table)
                self.trail.note_hold(is_held=self.config.topic(self.topic.topic).hold)
                return
            if attempt:
                time.sleep(STAGED_PAUSE)
            reconcile(self.config, (self.topic.topic,))
        raise TopicBusy(
            "files with records that may have to go wait for their commit: run it again when the archiver has committed"
            " them, or after `archiver reconcile`",
            topic=self.topic.topic,
            files=[file.path for one in waiting for file in one.files][:5],
        )

    @property
    def trail(self) -> AuditTrail:
        """Where acts on the table are noted."""
        return AuditTrail.of(self.topic, self.journal(self.table), self.registry)

    def journal(self, table: ArchiveTable) -> TableJournal:
        """The table's journal."""
        return Journal.of(self.config).of_table(table)

    def on(self, table: ArchiveTable) -> TableWork:
        """Return what changes of the table need."""
        journal = self.journal(table)
        return TableWork(registry=self.registry, catalog=self.catalog, manifests=self.manifests, journal=journal)

    def now_ms(self) -> int:
        """The time by the clock of Postgres, in ms since 1970."""
        return int(self.registry.retention.now() * 1_000)
