"""`archiver journal sum`: sum up old entries of journals and audit trails (ADR 55).

Needs only the journal's store. Safe beside jobs, and safe to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from archiver.audit.folder import TrailFolder
from archiver.audit.trail import SETTLED_ENTRIES
from archiver.config import Config
from archiver.errors import ConfigError, NotArchived
from archiver.storage.journal import AUDIT, METADATA, Journal, TableJournal
from archiver.storage.journal_sums import SETTLED_SECONDS, JournalSums, SumLimits
from schema_mapping.errors import ContextError

LEAST: Final = 2
"""The command sums up what is there, however few they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSums:
    """`packed` counts objects of the audit trail. `error` is why the work is incomplete."""

    table: str
    uuid: UUID
    folder: str
    sums: JournalSums
    packed: int = 0
    error: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SumJournals:
    """By default all journals below the configured root.

    Entries younger than `older_than` seconds stay.
    """

    config: Config
    topics: Sequence[str] = ()
    older_than: float | None = None
    dry_run: bool = False

    def run(self, done: Callable[[TableSums], None]) -> bool:
        """Report each journal to `done`; return whether all succeeded."""
        journals = tuple(self._journals())
        succeeded = True
        for table, uuid, journal in journals:
            sums = self._sum(table, uuid, journal)
            succeeded &= sums.error is None
            done(sums)
        return succeeded

    def _sum(self, table: str, uuid: UUID, journal: TableJournal) -> TableSums:
        sums, packed, error = JournalSums(), 0, None
        seconds = SETTLED_SECONDS if self.older_than is None else self.older_than
        try:
            sums = journal.sum_up(limits=SumLimits(least=LEAST), settled_seconds=seconds, dry_run=self.dry_run)
            if not self.dry_run and journal.trail is not None:
                trail = TrailFolder(path=journal.trail, objects=journal.objects, logged=journal.memory.logged)
                packed = trail.pack(through=trail.listed().last - SETTLED_ENTRIES)
        except ContextError as failure:
            error = failure
        return TableSums(table=table, uuid=uuid, folder=str(journal.folder), sums=sums, packed=packed, error=error)

    def _journals(self) -> Iterator[tuple[str, UUID, TableJournal]]:
        journal = Journal.of(self.config)
        if journal.root is None:
            raise ConfigError("There is no journal to sum up: set `journal` in [archive]", key="archive.journal")
        tables = {self.config.topic(topic).table: topic for topic in self.topics}
        for folder in [f"{journal.root}/{name}" for name in tables] or journal.objects.folders(journal.root):
            table = folder.rpartition("/")[2]
            if table in {AUDIT, METADATA}:
                continue
            folders = journal.objects.folders(folder)
            if not folders and table in tables:
                raise NotArchived(
                    "The topic has no journal in the store", topic=tables[table], table=table, journal=journal.root
                )
            for path in folders:
                uuid = _uuid(path)
                if uuid is not None:
                    yield table, uuid, journal.named(table, uuid)


def _uuid(path: str) -> UUID | None:
    try:
        return UUID(path.rpartition("/")[2])
    except ValueError:  # somebody else's folder
        return None
