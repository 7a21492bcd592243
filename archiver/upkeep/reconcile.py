"""`archiver reconcile`: commit what was staged while the catalog could not be reached, and settle what was in doubt.

It asks neither Kafka nor a schema registry: columns that the table lacks come from the ledger. `archiver archive` does
the same at its start. This command is for when no job runs.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from archiver.archive.table_files import ManifestReader
from archiver.commit.commit_staged import StagedTopic, commit_pending
from archiver.config import Config
from archiver.errors import ObjectMissing, TopicBusy
from archiver.storage.journal import Journal
from archiver.upkeep.archived_topic import known_topics
from archiver.upkeep.file_rewrite import settle_rewrites
from catalog.errors import TableMissing
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, TranslatedRange
from catalog.registry import Registry
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.errors import ContextError
from schema_mapping.field_ids import ledger_schema
from schema_mapping.row import row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledTopic:
    """What became of a topic's staged ranges: how many landed, how many still wait, and why."""

    topic: str
    table: str
    landed: int
    rows: int
    waiting: int
    error: ContextError | None = None


def reconcile(config: Config, topics: Sequence[str] = ()) -> tuple[ReconciledTopic, ...]:
    """Reconcile these topics, or all that the registry knows and the configuration has.

    Raises failures that stop all topics. The failure of one topic is in its result, and the others go on.
    """
    with ExitStack() as closing:
        registry = closing.enter_context(Registry(config.registry.dsn))
        catalog = closing.enter_context(TableCatalog(config.catalog))
        rows = known_topics(config, topics, registry)
        return tuple(_reconciled(row, Journal.of(config), registry, catalog) for row in rows)


def newest_columns(state: LedgerState, versions: Container[int] = ()) -> SchemaChange:
    """The ledger's current columns, and those that rows of `versions` are written to."""
    newest = state.versions[-1]
    rows = (row_mapping_from_text(each.mapping) for each in state.versions if each.version in versions)
    written = frozenset[int]().union(*(row.column_ids for row in rows))
    return SchemaChange(
        schema=ledger_schema(state.entries, row_mapping_from_text(newest.mapping), written=written),
        version=newest.version,
        owned_ids=frozenset(entry.field_id for entry in state.entries),
        written_ids=written,
    )


def _reconciled(topic: TopicRow, journal: Journal, registry: Registry, catalog: TableCatalog) -> ReconciledTopic:
    landed: list[TranslatedRange] = []
    error: ContextError | None = None
    try:
        with registry.lease(topic) as held:
            if not held:
                raise TopicBusy(
                    "Another archiver is at work on the topic; it commits what is staged", topic=topic.topic
                )
            _commit(topic, journal, registry, catalog, landed)
    except ContextError as met:
        error = met
    return ReconciledTopic(
        topic=topic.topic,
        table=topic.table,
        landed=len(landed),
        rows=sum(one.rows for one in landed),
        waiting=len(registry.files.pending(topic)),
        error=error,
    )


def _commit(
    topic: TopicRow, journal: Journal, registry: Registry, catalog: TableCatalog, landed: list[TranslatedRange]
) -> None:
    table = catalog.load(topic)
    if table is None:
        if registry.files.pending(topic):
            raise TableMissing("the table is gone; its staged files stay: restore it", table=topic.table)
        return
    kept = journal.of_table(table)
    kept.keep_schemas(topic, registry)
    settle_rewrites(topic, registry, catalog, ManifestReader(), kept)
    if waiting := (*registry.files.pending(topic), *registry.missing.load(topic, table_offsets=table.offsets)):
        change = newest_columns(registry.ledger.load(topic), {one.schema_version for one in waiting})
        opened = StagedTopic(topic=topic, table=table, change=change, journal=kept)
        for error in commit_pending(opened, registry, catalog, landed.extend).ahead.values():
            raise error
    missing = registry.missing.load(topic, table_offsets=table.offsets)
    if paths := [file.path for one in missing for file in one.files]:
        raise ObjectMissing(
            "staged files are gone from the object store, and no other file has their offsets yet: put them back and "
            "reconcile again, or have `archiver archive` fetch the records from Kafka again",
            topic=topic.topic,
            table=topic.table,
            files=paths,
        )
