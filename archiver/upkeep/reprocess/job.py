"""`archiver reprocess`: decode poor rows again, and replace their files in one commit.

Record bytes stay. Safe beside an archiver.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.engine.choice import HERE_BYTES, EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConfigError
from archiver.fault_points import FaultPoint, pass_point
from archiver.observer import all_of, ignore
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.target import RewriteTarget
from archiver.schemas import bloom_columns
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.storage.spool import clean_spool
from archiver.topics.assigning import ColumnAssigner
from archiver.topics.waiting_errors import waits_error
from archiver.upkeep.archived_topic import ArchivedTopic, find_archived
from archiver.upkeep.reprocess.redecode import Decoding
from archiver.upkeep.reprocess.report import ReprocessFinished, ReprocessObserver, ReprocessReport
from archiver.upkeep.reprocess.rounds import ReprocessRounds
from archiver.upkeep.reprocess.row_filter import RowFilter, countable_ids
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.properties import metrics_properties
from catalog.iceberg.schema_change import SchemaChange, merge
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from schema_mapping import names
from schema_mapping.field_ids import Assignment
from schema_mapping.raw_mapping import RAW_FORMAT
from schema_mapping.row import part_formats, row_mapping_from_text


class Reprocess:
    """Decode rows again that `wanted` selects, by default with `__err__`.

    `engine` is by default Spark; a small dry run uses this process.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        wanted: RowFilter | None = None,
        observer: ReprocessObserver = ignore,
        *,
        dry_run: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self._config = config
        self._name = topic
        self._wanted = wanted or RowFilter()
        self._observer = all_of(observer)
        self._dry_run = dry_run
        self._engine = engine

    def run(self) -> ReprocessReport:
        """Raises errors of configuration, schema and servers. A file's failure is in the report."""
        started = time.monotonic()
        engines = EngineChoice(self._config.spark, self._engine, here_bytes=HERE_BYTES if self._dry_run else -1)
        settings, section = self._checked(), self._config.schema_registry
        engines.check()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            archived = find_archived(
                self._config, self._name, registry=registry, catalog=catalog, dry_run=self._dry_run
            )
            schemas = TopicSchemas.read_or_recall(settings, section, known=archived.topic, registry=registry)
            closing.enter_context(engines)
            work, assignment = self._begin(archived, schemas, engines, registry=registry, catalog=catalog)
            commit_id = work.run(archived.table, _change(settings, archived.table, assignment))
        report = ReprocessReport(
            topic=self._name,
            table=archived.topic.table,
            dry_run=self._dry_run,
            schema_version=assignment.version,
            results=tuple(work.results.values()),
            failures=work.failures,
            seconds=time.monotonic() - started,
            commit_id=commit_id,
            schema_registry_down=schemas.schema_registry_down,
        )
        self._observer(ReprocessFinished(report=report))
        return report

    def _checked(self) -> TopicConfig:
        settings = self._config.topic(self._name)
        if not (settings.key.has_schema or settings.value.has_schema):
            raise ConfigError(
                "The topic's section names no schema to decode with: give its `key` or `value` one", topic=self._name
            )
        TopicSchemas.check(settings, self._config.schema_registry)
        return settings

    def _begin(
        self,
        archived: ArchivedTopic,
        schemas: TopicSchemas,
        engines: EngineChoice,
        *,
        registry: Registry,
        catalog: TableCatalog,
    ) -> tuple[ReprocessRounds, Assignment]:
        manifests = ManifestReader(countable_ids(archived.table.schema), PlanCache.below(self._config.archive.spool))
        journal = Journal.of(self._config).of_table(archived.table)
        work = TableWork(registry=registry, catalog=catalog, manifests=manifests, journal=journal)
        if not self._dry_run:
            settle_rewrites(work, archived.table)
        assignment = self._assign(schemas, archived, registry)
        pass_point(FaultPoint.AFTER_ASSIGN)
        if not self._dry_run:
            if schemas.schema_registry is not None:
                registry.last_known.remember_schemas(archived.topic, schemas.schema_registry, schemas.news)
            journal.keep_schemas(archived.topic, registry)
            newest = max(assignment.state.versions, key=lambda version: version.version)
            work.trail(archived.topic).begin(version=newest.version, fingerprint=newest.fingerprint)
        clean_spool(self._config.archive.spool)
        rounds = ReprocessRounds(
            self._target(schemas.config, archived.table, assignment),
            Decoding(
                row=assignment.row,
                key_envelope=schemas.key_envelope,
                value_envelope=schemas.value_envelope,
                raw_versions=_raw_versions(assignment),
                lossy_versions=lossy_versions_of(assignment),
            ),
            self._wanted,
            work,
            engines=engines,
            observer=self._observer,
            dry_run=self._dry_run,
        )
        return rounds, assignment

    def _target(self, settings: TopicConfig, table: ArchiveTable, assignment: Assignment) -> RewriteTarget:
        change = _change(settings, table, assignment)
        schema = merge(change.for_table(table.schema, table.ledger_version) or change.adding, table.schema)
        return replace(
            RewriteTarget.of(table, assignment.state.versions, self._config, FORMATS),
            column_names={identifier: schema.find_field(identifier).name for identifier in schema.field_ids},
            table_properties={**table.properties, **metrics_properties(schema, table.properties)},
            bloom_filters=table.bloom_filters if change.bloom_filters is None else change.bloom_filters,
        )

    def _assign(self, schemas: TopicSchemas, archived: ArchivedTopic, registry: Registry) -> Assignment:
        assigner = ColumnAssigner.of(archived.topic, schemas, registry, archived.table)
        choice = assigner.choose(archived.table, keeps=not self._dry_run)
        if choice.waiting is not None:
            what = "No row is decoded again with the version in force."
            raise waits_error(self._name, choice.waiting.changes, what=what)
        if choice.next_version is None or self._dry_run:
            return choice.next_version or choice.in_force
        return assigner.assign(archived.table, expected=choice.next_version)


def _raw_versions(assignment: Assignment) -> dict[str, frozenset[int]]:
    formats = {version.version: part_formats(version.mapping) for version in assignment.state.versions}
    return {
        part: frozenset(version for version, by_part in formats.items() if by_part[name] == RAW_FORMAT)
        for part, name in ((names.KEY, "key"), (names.VAL, "value"))
    }


def lossy_versions_of(assignment: Assignment) -> dict[str, frozenset[int]]:
    rows = {version.version: row_mapping_from_text(version.mapping) for version in assignment.state.versions}
    today, raw = assignment.row, _raw_versions(assignment)
    key = {version for version, row in rows.items() if row.key.column_ids - today.key.column_ids}
    value = {version for version, row in rows.items() if row.value.column_ids - today.value.column_ids}
    return {part: frozenset(versions) - raw[part] for part, versions in ((names.KEY, key), (names.VAL, value))}


def _change(settings: TopicConfig, table: ArchiveTable, assignment: Assignment) -> SchemaChange:
    return SchemaChange.of(assignment, bloom_filters=bloom_columns(settings, assignment, table.schema))
