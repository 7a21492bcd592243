"""The table, journal and registry of a topic in one consistent state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from archiver.config import Config
from archiver.errors import NotArchived, StorageDenied
from archiver.storage.journal import Journal
from archiver.storage.journal_survey import JournalSurvey, survey
from archiver.upkeep.verify.lost_catalog import find_table
from catalog.account.interval import Interval
from catalog.errors import CatalogDenied, CatalogUnreachable, RegistryError, RegistryNotMigrated, RegistryOutdated
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, since, summary_of
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset
from catalog.ranges.holes import AcceptedOffsets, AcceptedSpans
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import RegistryReader

LOOKS: Final = 6
"""How often everything is read again because the table changed meanwhile, or the journal's entry isn't there yet."""
_PAUSE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryState:
    """`account` has expected rows by offset. `journaled` is the journal's newest schema version, or 0.

    `proven_offsets` are the table's first offsets, bounded by rewrites.
    """

    ranges: tuple[StoredRange, ...]
    account: tuple[Interval, ...]
    is_in_doubt: bool
    mappings: Mapping[int, str]
    journaled: int = 0
    accepted: tuple[AcceptedOffsets, ...] = ()
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    proven_offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySources:
    """`told` describes each source or its failure.

    `reach` is the table's end after reading journal and registry: neither may know more.
    """

    table: ArchiveTable
    journal: JournalSurvey
    has_journal: bool
    registry: RegistryState | None
    told: Mapping[str, str]
    reach: Mapping[int, PartitionOffset]

    @property
    def accepted(self) -> AcceptedSpans:
        journaled = (acceptance.place for acceptance in self.journal.accepted)
        registered = self.registry.accepted if self.registry else ()
        return AcceptedSpans((*filter(None, journaled), *registered))

    @property
    def has_newest_entry(self) -> bool:
        """Whether the journal has the table's newest commit."""
        return _has_newest(self.table, self.journal)

    @property
    def mappings(self) -> dict[int, str]:
        mappings = dict(self.registry.mappings) if self.registry else {}
        return mappings | {schema.version.version: schema.version.mapping for schema in self.journal.schemas}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFinder:
    """`metadata` names a metadata file or folder instead of the catalog."""

    config: Config
    topic: str
    metadata: str | None = None
    asks_registry: bool = True

    def find(self) -> VerifySources:
        """Raise NotArchived without a table, StorageError and TableError.

        RegistryNotMigrated or RegistryOutdated if there is no journal and the registry is unreadable.
        """
        reported: dict[str, str] = {}
        load = self._loader(reported)
        for left in reversed(range(LOOKS)):
            table = load()
            journal = Journal.of(self.config).of_table(table)
            entries = survey(journal)
            registry = self._registry(table, reported, is_needed=entries.is_empty) if self.asks_registry else None
            later = load()
            is_same = _only_grew(table, later)
            if is_same and (not left or _has_newest(table, entries)):
                break
            time.sleep(_PAUSE)
        else:
            raise CatalogUnreachable(
                "Others rewrite the table faster than its journal can be read: run it again when they are done",
                table=table.topic.table,
            )
        reported["journal"] = "not configured" if journal.folder is None else f"{len(entries.commits)} commits"
        if journal.folder is not None:
            reported["journal"] += f" in {journal.folder}"
        if not self.asks_registry:
            reported["registry"] = "not asked"
        return VerifySources(
            table=table,
            journal=entries,
            has_journal=journal.folder is not None and not entries.is_empty,
            registry=registry,
            told=reported,
            reach=later.offsets,
        )

    def reload(self) -> ArchiveTable:
        """Raises like `find`."""
        return self._loader({})()

    def _loader(self, told: dict[str, str]) -> Callable[[], ArchiveTable]:
        def load() -> ArchiveTable:
            refusal: CatalogUnreachable | CatalogDenied | None = None
            if self.metadata is None:
                try:
                    return self._of_catalog(told)
                except (CatalogUnreachable, CatalogDenied) as error:
                    refusal = error
                    told["catalog"] = f"can't be asked: {error.message}"
            else:
                told["catalog"] = "not asked"
            try:
                table = find_table(self.config, self.topic, self.metadata)
            except StorageDenied as error:
                if refusal is None:
                    raise
                raise refusal from error  # the catalog would give, or sign with, the store's keys
            told["table"] = f"by its metadata file {table.iceberg.metadata_location}, the newest that was found"
            return table

        return load

    def _of_catalog(self, told: dict[str, str]) -> ArchiveTable:
        settings = self.config.topic(self.topic)
        with TableCatalog(self.config.catalog) as catalog:
            table = catalog.adopt(settings.table, topic=self.topic)
        if table is None:
            raise NotArchived(
                "the topic has no table: run `archiver archive` for it, or correct `table` in its section",
                topic=self.topic,
                table=settings.table,
            )
        told["catalog"] = self.config.catalog["uri"]
        told["table"] = f"as the catalog has it: {table.iceberg.metadata_location}"
        return table

    def _registry(self, table: ArchiveTable, told: dict[str, str], *, is_needed: bool) -> RegistryState | None:
        try:
            with RegistryReader(self.config.registry.dsn, connections=1) as registry:
                topic = registry.topics.find(
                    cluster_id=table.topic.cluster_id, topic=table.topic.topic, table_uuid=table.uuid
                )
                if topic is None:
                    told["registry"] = "doesn't know the topic with this table"
                    return None
                # Read what is in doubt first and last: a commit in between would look like a contradiction.
                before = bool(registry.ranges.pending(topic) or registry.ranges.unfinished(topic))
                account, ranges = registry.ranges.both_books(topic)
                accepted = registry.ranges.accepted_offsets(topic)
                proven_offsets = registry.ranges.proven_first_offsets(topic, table.first_offsets)
                first_offsets = registry.ranges.first_offsets(topic)
                after = bool(registry.ranges.pending(topic) or registry.ranges.unfinished(topic))
                state = registry.ledger.load(topic)
                root = self.config.archive.journal
                journaled = 0 if root is None else registry.ledger.journaled(topic, root)
        except RegistryError as error:
            # It is there, and another archiver can read it. Without it and a journal, compacted rows look foreign.
            if is_needed and isinstance(error, RegistryNotMigrated | RegistryOutdated):
                raise
            told["registry"] = f"can't be asked: {error.message}"
            return None
        told["registry"] = f"{len(ranges)} ranges"
        return RegistryState(
            ranges=ranges,
            account=account,
            is_in_doubt=before or after,
            mappings={version.version: version.mapping for version in state.versions},
            journaled=journaled,
            accepted=accepted,
            first_offsets=first_offsets,
            proven_offsets=proven_offsets,
        )


def _only_grew(before: ArchiveTable, after: ArchiveTable) -> bool:
    """More offsets don't count."""
    if before.snapshot_id == after.snapshot_id:
        return True
    later = None if before.snapshot_id is None else since(after.iceberg.metadata, before.snapshot_id)
    return later is not None and all(keys.RANGES in summary_of(snapshot) for snapshot in later)


def _has_newest(table: ArchiveTable, journal: JournalSurvey) -> bool:
    commit_ids = {commit.commit_id for _, commit in journal.commits}
    for snapshot in history(table.iceberg.metadata):
        commit_id = summary_of(snapshot).get(keys.COMMIT_ID)
        if commit_id is not None:
            is_journaled = keys.RANGES in summary_of(snapshot) or keys.REWRITE in summary_of(snapshot)
            return not commit_ids or commit_id in commit_ids or not is_journaled
    return True
