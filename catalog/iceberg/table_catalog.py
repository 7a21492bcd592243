"""Load, create, commit and settle an archive's tables in a REST catalog (docs/concepts.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate

from catalog.errors import CatalogDenied, CatalogRefused, CatalogUnreachable, NotOurTable, TableError, TableMissing
from catalog.iceberg import commit as commits
from catalog.iceberg.append import Attempt
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.bloom_filters import filter_properties
from catalog.iceberg.commit import Backoff, CommitOutcome
from catalog.iceberg.commit_answer import CommitAnswer
from catalog.iceberg.creation import NewTable
from catalog.iceberg.deletion_gate import TableObjects, delete_all
from catalog.iceberg.expiry import SnapshotRetention
from catalog.iceberg.housekeeping import expire, housekeep
from catalog.iceberg.iceberg_format import check_writable
from catalog.iceberg.last_known_table import LastKnownTable
from catalog.iceberg.owner_settings import keeping_old_metadata, warn_once
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.properties import (
    DELETE_OLD_METADATA,
    FORMAT,
    PARTITIONED_BY,
    TOPIC,
    check_owner,
    first_properties,
    owner,
)
from catalog.iceberg.refill_commit import Refill, RefillOutcome, commit_refill
from catalog.iceberg.repartition import is_partitioned, repartition_updates
from catalog.iceberg.rest import FAILURES, REFUSALS, BoundedRestCatalog, connect, in_our_words
from catalog.iceberg.rewrite_commit import Changed, RewriteOutcome, commit_rewrite
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.settle import Settled, settle
from catalog.iceberg.table_creation import blemish, check_field_ids, complete, create_table
from catalog.iceberg.written_lists import WrittenLists
from catalog.model import TopicRow, TranslatedRange
from catalog.partitioning import Partitioning, PartitionTerm
from catalog.ranges.rewrite import Rewrite

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogMemory:
    lists: WrittenLists = field(default_factory=WrittenLists)
    remarks: set[str] = field(default_factory=set)


class TableCatalog:
    """Use one per thread."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        timeout_seconds: float = 60.0,
        backoff: Backoff | None = None,
        may_be_away: bool = False,
        late_io: bool = False,
        memory: CatalogMemory | None = None,
        connect: Callable[..., BoundedRestCatalog] = connect,
    ) -> None:
        """`may_be_away` postpones a failed connection to the first call.

        `late_io` gives tables a `LateFileIO`, for metadata readers. Connections of one job share `memory`.
        """
        self._uri = properties.get("uri", "")
        self._properties = dict(properties)
        self._connect = partial(connect, self._properties, timeout_seconds=timeout_seconds, late_io=late_io)
        self._backoff = replace(backoff or Backoff(), asked_seconds=self._asked_seconds)
        self._connection: BoundedRestCatalog | None = None
        self._plain: set[str] = set()
        self.memory = memory or CatalogMemory()
        try:
            self._connection = self._connect()
        except CatalogUnreachable:
            if not may_be_away:
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def _rest(self) -> BoundedRestCatalog:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _asked_seconds(self) -> float:
        return 0.0 if self._connection is None else self._connection.asked_pause.seconds()

    def known(self, table: ArchiveTable) -> LastKnownTable:
        """Raises FormatUpgraded, as a commit does."""
        check_writable(table)
        return LastKnownTable.of(table, self._properties)

    def recall(self, topic: TopicRow, known: LastKnownTable) -> ArchiveTable:
        """Raises CatalogUnreachable if the table's storage needs the catalog."""
        return known.table(topic, self._properties)

    def load(self, topic: TopicRow, known: ArchiveTable | None = None) -> ArchiveTable | None:
        """An unchanged `known` makes it cheaper.

        Raises NotOurTable, NewerFormat, TopicRecreated and CatalogUnreachable.
        """
        with in_our_words(self._uri, topic.table):
            try:
                table = self._rest.load_table(topic.table, None if known is None else known.iceberg)
            except NoSuchTableError:
                return None
        check_owner(topic, table.metadata.properties, uuid=table.metadata.table_uuid)
        return ArchiveTable(topic=topic, iceberg=table, lists=self.memory.lists)

    def require(self, topic: TopicRow) -> ArchiveTable:
        """Raises TableMissing, and like `load`."""
        table = self.load(topic)
        if table is None:
            raise TableMissing("the table is gone; its files stay: restore it", table=topic.table)
        return table

    def reload(self, known: ArchiveTable) -> ArchiveTable:
        """Raises TableMissing if it was dropped or recreated, and like `load`."""
        table = self.load(known.topic, known)
        if table is None or table.uuid != known.uuid:
            raise TableMissing(
                "the table was dropped while its topic was archived: restore it, or archive into a fresh registry",
                table=known.topic.table,
                uuid=str(known.uuid),
                found_uuid=None if table is None else str(table.uuid),
            )
        return table

    def adopt(self, name: str, *, topic: str) -> ArchiveTable | None:
        """Load a table by name, without a registry row (`id` 0).

        Raises NotOurTable and NewerFormat if it isn't this topic's archive.
        """
        with in_our_words(self._uri, name):
            try:
                table = self._rest.load_table(name)
            except NoSuchTableError:
                return None
        row = owner(table.metadata.properties, topic=topic, table=name)
        return ArchiveTable(topic=row, iceberg=table, lists=self.memory.lists)

    def archives(self, namespace: str) -> dict[str, str]:
        """Return topics by table."""
        with in_our_words(self._uri, namespace):
            try:
                names = [".".join(identifier) for identifier in self._rest.list_tables(namespace)]
            except NoSuchNamespaceError:
                return {}
            topics = {name: self._rest.load_table(name).properties.get(TOPIC) for name in names}
        return {name: topic for name, topic in topics.items() if topic}

    def ensure(
        self,
        topic: TopicRow,
        change: SchemaChange,
        *,
        partition_by: str | Sequence[PartitionTerm] = "day",
        partition_source: PartitionSource = "nested",
        adopts: bool = False,
    ) -> ArchiveTable:
        """Existing tables are left. `adopts` takes over an empty foreign one with fitting columns.

        Raises UnfitPartitioning if the columns can't be partitioned so.
        """
        existing = self._loaded(topic, adopts=adopts)
        if existing is not None:
            check_field_ids(existing.iceberg, change.schema, is_made=False)
            return existing
        terms = (PartitionTerm(partition_by, None),) if isinstance(partition_by, str) else partition_by
        new = self._new_table(topic, change, partitioning_for(terms, change.schema, partition_source), partition_source)
        lost: TableError | None = None
        for _ in self._backoff:
            try:
                self._make(topic, new, adopts=adopts)
                lost = None
            except (CatalogUnreachable, CatalogRefused, CatalogDenied) as error:
                lost = error  # it may exist now, or another archiver is just creating its namespace
            adopts = adopts or topic.table in self._plain
            made = self._loaded(topic, adopts=adopts)
            if made is not None:
                check_field_ids(made.iceberg, change.schema)
                return made
            if not isinstance(lost, CatalogUnreachable) and not (lost is None and adopts):
                break
        raise lost or TableMissing("the catalog said it made the table and does not have it", table=topic.table)

    def _loaded(self, topic: TopicRow, *, adopts: bool) -> ArchiveTable | None:
        try:
            return self.load(topic)
        except NotOurTable:
            if not adopts:
                raise
            return None

    def commit(
        self,
        table: ArchiveTable,
        ranges: Sequence[TranslatedRange],
        *,
        change: SchemaChange | None = None,
        commit_id: str,
        is_fresh: bool = False,
    ) -> CommitOutcome:
        """Exactly once. Safe to repeat with the same `commit_id`.

        The table is reloaded, before the first attempt unless `is_fresh`.
        """
        with in_our_words(self._uri, table.topic.table):
            return commits.commit(
                load=_loads(table, self.reload, is_fresh=is_fresh),
                send=self._send,
                ranges=ranges,
                change=change,
                commit_id=commit_id,
                backoff=self._backoff,
            )

    def housekeep(self, known: ArchiveTable, retention: SnapshotRetention) -> int:
        """Return the number of expired snapshots. `known` was just loaded. Failures are logged."""
        warn_once(known, retention, self.memory.remarks)
        try:
            with in_our_words(self._uri, known.topic.table):
                return housekeep(known, retention, load=partial(self.reload, known), send=self._updated)
        except TableError:
            _LOG.warning("old snapshots of %s stay for now", known.topic.table, exc_info=True)
            return 0

    def expire(self, table: ArchiveTable, snapshots: Sequence[Snapshot]) -> tuple[str, ...]:
        """The table was just loaded. Return the paths possibly left.

        Raises CatalogUnreachable (retryable) after foreign commits, FilesShared if the owner forbids it.
        """
        with in_our_words(self._uri, table.topic.table):
            try:
                return expire(table, snapshots, load=partial(self.reload, table), send=self._updated)
            except CommitFailedException as error:
                raise CatalogUnreachable(
                    "others committed while snapshots were expired; look again", table=table.topic.table
                ) from error

    def repartition(
        self, table: ArchiveTable, wanted: Partitioning, *, change_id: str, attempted: Callable[[ArchiveTable], None]
    ) -> ArchiveTable:
        """For future files. Safe to repeat. `attempted` gets the table before each attempt.

        A refusal may have landed. Raises CatalogUnreachable if metadata changes constantly.
        """
        failure: Exception | None = None
        with in_our_words(self._uri, table.topic.table):
            for _ in self._backoff:
                table = self.reload(table)
                if is_partitioned(table, wanted):
                    return table
                if isinstance(failure, REFUSALS):
                    raise failure
                check_writable(table)
                attempted(table)
                try:
                    self._update(table, *repartition_updates(table, wanted, change_id))
                    failure = None
                except FAILURES as error:
                    failure = error
        raise CatalogUnreachable(
            "the table's partitioning can't be changed: others change the table all the time, or the catalog doesn't "
            "answer; run it again",
            table=table.topic.table,
        )

    def rewrite(
        self, table: ArchiveTable, rewrite: Rewrite, *, change: SchemaChange | None = None, changed: Changed
    ) -> RewriteOutcome:
        """Exactly once. `changed` checks the reloaded table."""
        with in_our_words(self._uri, table.topic.table):
            return commit_rewrite(
                load=partial(self.reload, table),
                send=self._send,
                rewrite=rewrite,
                change=change,
                changed=changed,
                backoff=self._backoff,
            )

    def refill(self, table: ArchiveTable, refill: Refill, *, change: SchemaChange | None = None) -> RefillOutcome:
        """Exactly once."""
        with in_our_words(self._uri, table.topic.table):
            return commit_refill(
                load=partial(self.reload, table),
                send=self._send,
                refill=refill,
                change=change,
                backoff=self._backoff,
            )

    def settle(
        self, table: ArchiveTable, ranges: Sequence[TranslatedRange], *, after_rollback: bool = False
    ) -> Settled:
        """The table must be freshly loaded. Raises RolledBack unless `after_rollback`, like `settle.settle`."""
        with in_our_words(self._uri, table.topic.table):
            return settle(table, ranges, after_rollback=after_rollback)

    def _send(self, attempt: Attempt) -> None:
        self._update(attempt.table, attempt.requirements, attempt.updates)

    def _updated(
        self, table: ArchiveTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> TableMetadata:
        return self._update(table, requirements, updates).metadata

    def _update(
        self, table: ArchiveTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitAnswer:
        iceberg = table.iceberg
        updates = (*updates, *keeping_old_metadata(table.properties))
        done: CommitAnswer = self._rest.send_commit(iceberg, requirements, updates)
        if done.properties.get(DELETE_OLD_METADATA) == "true":  # some catalogs leave this to their clients
            kept = set(done.metadata_files)
            before = (entry.metadata_file for entry in iceberg.metadata.metadata_log)
            permit = TableObjects(lambda: done.properties, table.topic.table)
            delete_all(iceberg.io, [path for path in before if path not in kept], permit)
        return done

    def _new_table(
        self, topic: TopicRow, change: SchemaChange, partitioning: Partitioning, partition_source: PartitionSource
    ) -> NewTable:
        properties = first_properties(topic, change.schema, ledger_version=change.version)
        properties |= filter_properties(change.schema, change.bloom_filters or {})
        if not partitioning.is_time_alone:
            properties[PARTITIONED_BY] = partitioning.by
        return NewTable(
            schema=change.schema, partitioning=partitioning, partition_source=partition_source, properties=properties
        )

    def _make(self, topic: TopicRow, new: NewTable, *, adopts: bool) -> None:
        with in_our_words(self._uri, topic.table):
            self._create_namespaces(topic)
            try:
                if adopts and (empty := self._empty(topic.table)) is not None:
                    refused = complete(self._rest, empty, new)
                else:
                    refused = create_table(
                        self._rest, topic.table, new, makes_plain=lambda: self._plain.add(topic.table)
                    ).refused_order
            except (TableAlreadyExistsError, CommitFailedException):
                return  # another archiver or an earlier delivery of this request created it
            if refused is not None:
                _LOG.warning(
                    "the catalog refused the sort order of %s, so the table has none. Archiving and replay don't need"
                    " it (%s)",
                    topic.table,
                    refused,
                )

    def is_blank(self, name: str) -> bool:
        """Whether the table is empty, plain and foreign: made for a topic maybe."""
        with in_our_words(self._uri, name):
            table = self._empty(name)
        return table is not None and blemish(table.metadata) is None

    def _empty(self, name: str) -> Table | None:
        try:
            table = self._rest.load_table(name)
        except NoSuchTableError:
            return None
        return None if {FORMAT, TOPIC} <= table.metadata.properties.keys() else table

    def _create_namespaces(self, topic: TopicRow) -> None:
        namespace = topic.table.split(".")[:-1]
        for depth in range(1, len(namespace) + 1):
            parent = tuple(namespace[:depth])
            if not self._rest.namespace_exists(parent):
                try:
                    self._rest.create_namespace(parent)
                except NamespaceAlreadyExistsError:
                    continue


def _loads(
    table: ArchiveTable, reload: Callable[[ArchiveTable], ArchiveTable], *, is_fresh: bool
) -> Callable[[], ArchiveTable]:
    fresh = [table] if is_fresh else []
    return lambda: fresh.pop() if fresh else reload(table)
