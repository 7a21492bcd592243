"""Open a topic: find faults before records are fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Self

from pyiceberg.schema import Schema

from archiver.audit.trail import AuditTrail
from archiver.commit.commit_staged import StagedTopic
from archiver.config import TopicConfig
from archiver.config.mistakes import key_text
from archiver.errors import ConfigError, SchemaChangeWaits
from archiver.fault_points import FaultPoint, pass_point
from archiver.files.unapproved import WaitingMapping
from archiver.kafka.leaders import TopicDescription
from archiver.kafka.losses import check_topic_id
from archiver.schemas import EnvelopeReader, bloom_columns, known_schemas
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from archiver.topics.assigning import ColumnAssigner, NextVersion, waiting_mapping
from archiver.topics.partitioning import check_partitioning, partition_source, unfit
from archiver.topics.schema_choice import SchemaChoice, WaitingChange
from archiver.topics.table_identity import identified, may_adopt
from archiver.topics.waiting_errors import waits_error
from catalog.errors import CatalogRefused, CatalogUnreachable, NotOurTable, UnfitPartitioning
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.bloom_filters import BloomFilters
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import SchemaIdentity, TopicRow
from catalog.registry import Registry
from catalog.registry.ledger_rows import SeenLedger
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedTopic:
    """A topic ready for tasks.

    `change` is the table's change of columns, for the next commit. `bloom_filters` are by field id, for new
    files. `schema_registry` names the registry of envelopes. `for_records` stores `next_version` before records
    are archived with it. `waiting` is a schema change that waits for approval, and `waiting_mapping` its mapping.
    `stops` is the error of the next records, if none can be archived before the approval; staged ranges are
    committed before.
    """

    topic: TopicRow
    table: ArchiveTable
    row: RowMapping
    change: SchemaChange
    journal: TableJournal = field(default_factory=TableJournal)
    bloom_filters: BloomFilters = field(default_factory=dict)
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    schema_registry: str | None = None
    next_version: NextVersion | None = None
    waiting: WaitingChange | None = None
    waiting_mapping: WaitingMapping | None = None
    stops: SchemaChangeWaits | None = None

    @property
    def staged(self) -> StagedTopic:
        return StagedTopic(topic=self.topic, table=self.table, change=self.change, journal=self.journal)

    def for_rows(self, row: RowMapping) -> Self:
        """For values that `row` encoded: they have no envelope, and no header or later schema changes them."""
        return replace(self, row=row, key_envelope=None, value_envelope=None, waiting_mapping=None)

    def knowing(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        key, value = (
            envelope and envelope.with_schemas(schemas) for envelope in (self.key_envelope, self.value_envelope)
        )
        waiting = self.waiting_mapping and self.waiting_mapping.knowing(schemas)
        return replace(self, key_envelope=key, value_envelope=value, waiting_mapping=waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTopic:
    """Table (or its error) and ledger are set if read ahead."""

    row: TopicRow | None
    loaded: Future[ArchiveTable | None] | None = None
    seen: SeenLedger | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicServers:
    """`check_columns` raises ConfigError for columns that the configuration names, and that no schema has."""

    registry: Registry
    catalog: TableCatalog
    journal: Journal
    check_columns: Callable[[TopicConfig, Iterable[Schema], LedgerState], None] = lambda *_: None


def open_topic(
    schemas: TopicSchemas,
    described: TopicDescription,
    known: RegisteredTopic,
    servers: TopicServers,
    *,
    cluster_id: str,
    accept_raw: bool = False,
    notes_hold: bool = False,
) -> OpenedTopic:
    """Register the topic, assign its columns, and load or make its table.

    `notes_hold` audits whether the configuration holds the topic. An empty table made for the topic is adopted
    (docs/adr/0079-tables-without-staged-creation.md).

    Raises RegistryError and TableError; DataLoss if the topic was recreated, ConfigError if the table is
    partitioned differently, WouldBecomeRaw if a schema is gone, unless `accept_raw`.
    """
    config, registry, catalog = schemas.config, servers.registry, servers.catalog
    if known.row is not None:
        check_topic_id(config.name, archived=known.row.topic_id, found=described.topic_id)
    topic, seen = known.row, known.seen
    if topic is None or (topic.topic_id, topic.table) != (described.topic_id, config.table):
        topic = registry.topics.register(
            cluster_id=cluster_id, topic=config.name, topic_id=described.topic_id, table=config.table
        )
    load = known.loaded.result if known.loaded is not None and topic == known.row else None
    table, adopts = _find(topic, config, servers, load=load)
    if table is not None:
        if seen is None or topic != known.row or seen.table_uuid != table.uuid:
            registry.ledger.check_table(topic, table)
        check_partitioning(config, table)
    assigner = ColumnAssigner.of(topic, schemas, registry, table, accept_raw=accept_raw)
    if table is None:
        choice = SchemaChoice(in_force=assigner.assign(None))
    else:
        choice = assigner.choose(table, seen if topic == known.row else None)
    assignment = choice.in_force
    pass_point(FaultPoint.AFTER_ASSIGN)
    filters = bloom_columns(config, assignment, None if table is None else table.schema)
    servers.check_columns(config, known_schemas(assignment, None if table is None else table.schema), assignment.state)
    if table is None:
        try:
            table = catalog.ensure(
                topic,
                SchemaChange.of(assignment, bloom_filters=filters),
                partition_by=config.partition_terms,
                partition_source=partition_source(config, None),
                adopts=adopts,
            )
        except UnfitPartitioning as error:
            raise unfit(config, error) from error
        except CatalogRefused as error:
            raise not_made(config, error) from error
        check_partitioning(config, table)
        registry.last_known.remember_table(topic, catalog.known(table))
        pass_point(FaultPoint.AFTER_CREATE)
        assigner = ColumnAssigner.of(topic, schemas, registry, table, accept_raw=accept_raw)
        choice = assigner.choose(table)
        assignment = choice.in_force
    kept = servers.journal.of_table(table)
    newest = max(assignment.state.versions, key=lambda version: version.version)
    kept.keep_schemas(topic, registry, newest=newest.version)
    AuditTrail(topic=topic, journal=kept, registry=registry).begin(
        version=newest.version,
        fingerprint=newest.fingerprint,
        table=None if table.is_recalled else table,
        is_held=config.hold if notes_hold else None,
    )
    readers, stops = _readers_in_force(choice, schemas)
    next_version = choice.next_version
    return OpenedTopic(
        topic=topic,
        table=table,
        row=assignment.row,
        change=SchemaChange.of(assignment, bloom_filters=filters),
        journal=kept,
        bloom_filters=table.bloom_filters if filters is None else filters,
        key_envelope=readers[0],
        value_envelope=readers[1],
        schema_registry=schemas.schema_registry,
        next_version=None if next_version is None else NextVersion(assignment=next_version, assigner=assigner),
        waiting=choice.waiting,
        waiting_mapping=waiting_mapping(choice, schemas),
        stops=stops,
    )


def _readers_in_force(
    choice: SchemaChoice, schemas: TopicSchemas
) -> tuple[tuple[EnvelopeReader | None, EnvelopeReader | None], SchemaChangeWaits | None]:
    """The current version's readers, and the error of next records that wait for an approval."""
    own, waiting = (schemas.key_envelope, schemas.value_envelope), choice.waiting
    if waiting is None:
        return own, None
    name = schemas.config.name
    if schemas.config.on_schema_change == "halt":
        return own, waits_error(name, waiting.changes, what="Nothing is archived until then.")
    try:
        key, value = schemas.readers_of(choice.in_force.row)
    except ConfigError as error:
        what = f"{error.message}: nothing is archived until this is approved."
        return own, waits_error(name, waiting.changes, what=what)
    return (key and key.beside(own[0]), value and value.beside(own[1])), None


def for_records(opened: OpenedTopic, registry: Registry) -> OpenedTopic:
    """Store a new schema version for the next records.

    Raises ColumnsMoved if another process changed the columns, and SchemaChangeWaits if a change waits and the
    topic says `on_schema_change = "halt"`, or names another format than the current version has.
    """
    if opened.stops is not None:
        raise opened.stops
    if opened.next_version is None:
        return opened
    assignment, schemas = opened.next_version.store(opened.table), opened.next_version.assigner.schemas
    pass_point(FaultPoint.AFTER_ASSIGN)
    newest = max(assignment.state.versions, key=lambda version: version.version)
    opened.journal.keep_schemas(opened.topic, registry, newest=newest.version)
    AuditTrail(topic=opened.topic, journal=opened.journal, registry=registry).begin(
        version=newest.version, fingerprint=newest.fingerprint
    )
    filters = bloom_columns(schemas.config, assignment, opened.table.schema)
    return replace(
        opened,
        row=assignment.row,
        change=SchemaChange.of(assignment, bloom_filters=filters),
        bloom_filters=opened.table.bloom_filters if filters is None else filters,
        next_version=None,
    )


def _find(
    topic: TopicRow,
    config: TopicConfig,
    servers: TopicServers,
    *,
    load: Callable[[], ArchiveTable | None] | None,
) -> tuple[ArchiveTable | None, bool]:
    registry = servers.registry
    try:
        return identified(topic, registry, lambda: load_or_recall(topic, registry, servers.catalog, load=load)), False
    except NotOurTable as error:
        if not may_adopt(topic, error, registry, servers.journal):
            raise
        return None, True
    except CatalogRefused as error:
        if registry.last_known.recall_table(topic) is not None:
            raise
        raise not_made(config, error) from error


def not_made(config: TopicConfig, error: CatalogRefused) -> CatalogRefused:
    return CatalogRefused(
        f"the topic's table can't be made: {error.message}. If the catalog refuses its name, set another `table` for"
        " the topic; nothing was archived to this one",
        **error.context,
        key=key_text(("topics", config.name, "table")),
    )


def load_or_recall(
    topic: TopicRow,
    registry: Registry,
    catalog: TableCatalog,
    *,
    load: Callable[[], ArchiveTable | None] | None = None,
) -> ArchiveTable | None:
    """The current table, or the last known one if the catalog is down.

    Raises CatalogUnreachable if it was never loaded, or needs the catalog's credentials. `load` returns or raises
    a recent result.
    """
    try:
        table = catalog.load(topic) if load is None else load()
    except CatalogUnreachable as error:
        recalled = registry.last_known.recall_table(topic)
        if recalled is None:
            raise CatalogUnreachable(
                f"{error.message} Only tables that were loaded before can be archived without it", **error.context
            ) from error
        return catalog.recall(topic, recalled)
    if table is not None:
        registry.last_known.remember_table(topic, catalog.known(table))
    return table


def store_of(table: ArchiveTable) -> ObjectStore:
    """With the table's vended credentials."""
    return ObjectStore.of_table(table.iceberg)
