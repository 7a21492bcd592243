"""`archiver reconcile`: commit staged ranges and settle commits in doubt, without Kafka."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from archiver.archive.table_files import ManifestReader
from archiver.commit.commit_staged import StagedTopic, commit_pending, settle_staged
from archiver.config import Config
from archiver.errors import ObjectMissing, TopicBusy
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.storage.journal import Journal
from archiver.upkeep.archived_topic import known_topics
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
    topic: str
    table: str
    landed: int
    rows: int
    waiting: int
    errors: tuple[ContextError, ...] = ()

    @property
    def error(self) -> ContextError | None:
        return self.errors[0] if self.errors else None


def reconcile(config: Config, topics: Sequence[str] = ()) -> tuple[ReconciledTopic, ...]:
    """Raises failures that stop all topics. A topic's failure is in its result."""
    with ExitStack() as closing:
        registry = closing.enter_context(Registry(config.registry.dsn))
        catalog = closing.enter_context(TableCatalog(config.catalog))
        rows = known_topics(config, topics, registry)
        return tuple(reconcile_topic(row, Journal.of(config), registry, catalog) for row in rows)


def newest_columns(state: LedgerState, versions: Container[int] = ()) -> SchemaChange:
    newest = state.versions[-1]
    rows = (row_mapping_from_text(version.mapping) for version in state.versions if version.version in versions)
    written = frozenset[int]().union(*(row.column_ids for row in rows))
    return SchemaChange(
        schema=ledger_schema(state.entries, row_mapping_from_text(newest.mapping), written=written),
        version=newest.version,
        owned_ids=frozenset(entry.field_id for entry in state.entries),
        written_ids=written,
    )


def reconcile_topic(topic: TopicRow, journal: Journal, registry: Registry, catalog: TableCatalog) -> ReconciledTopic:
    landed: list[TranslatedRange] = []
    errors: tuple[ContextError, ...]
    try:
        with registry.lease(topic) as leased:
            if not leased:
                raise TopicBusy(
                    "Another archiver is at work on the topic; it commits what is staged", topic=topic.topic
                )
            errors = tuple(_commit(topic, journal, registry, catalog, landed))
    except ContextError as met:
        errors = (met,)
    return ReconciledTopic(
        topic=topic.topic,
        table=topic.table,
        landed=len(landed),
        rows=sum(range_.rows for range_ in landed),
        waiting=len(registry.files.pending(topic)),
        errors=errors,
    )


def _commit(
    topic: TopicRow, journal: Journal, registry: Registry, catalog: TableCatalog, landed: list[TranslatedRange]
) -> list[ContextError]:
    table = catalog.load(topic)
    if table is None:
        if registry.files.pending(topic):
            raise TableMissing("the table is gone; its staged files stay: restore it", table=topic.table)
        return []
    registry.ledger.check_table(topic, table)
    kept = journal.of_table(table)
    kept.keep_schemas(topic, registry)
    settle_staged(topic, registry, catalog, kept, load=partial(catalog.reload, table), landed=landed.extend)
    settle_rewrites(TableWork(registry=registry, catalog=catalog, manifests=ManifestReader(), journal=kept), table)
    errors: list[ContextError] = []
    if waiting := (*registry.files.pending(topic), *registry.missing.load(topic, table_offsets=table.offsets)):
        change = newest_columns(registry.ledger.load(topic), {range_.schema_version for range_ in waiting})
        opened = StagedTopic(topic=topic, table=table, change=change, journal=kept)
        ahead = commit_pending(opened, registry, catalog, landed.extend).ahead
        errors += [ahead[partition] for partition in sorted(ahead)]
    missing = registry.missing.load(topic, table_offsets=table.offsets)
    if paths := [file.path for range_ in missing for file in range_.files]:
        errors.append(_gone(topic, paths))
    return errors


def _gone(topic: TopicRow, paths: list[str]) -> ObjectMissing:
    return ObjectMissing(
        "staged files are gone from the object store, and no other file has their offsets yet: put them back and"
        " reconcile again, or have `archiver archive` fetch the records from Kafka again",
        topic=topic.topic,
        table=topic.table,
        files=paths,
    )
