"""`archiver reprocess`: decode rows with `__err__` again after a schema fix, and rewrite their files in one commit.

Offsets, order and bytes of the records stay as they are. It can run beside an archiver: commits of others stay, and
files that others rewrite meanwhile are planned again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.config import Config
from archiver.config.model import RawFormat, TopicConfig
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.errors import ConfigError
from archiver.fault_points import FaultPoint, pass_point
from archiver.observer import all_of, ignore
from archiver.schemas import mapping_options
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.journal import Journal
from archiver.storage.spool import clean_spool
from archiver.upkeep.archived_topic import ArchivedTopic, find_archived
from archiver.upkeep.file_rewrite import settle_rewrites
from archiver.upkeep.reprocess.error_rows import ErrorFilter
from archiver.upkeep.reprocess.file import ReprocessTarget
from archiver.upkeep.reprocess.redecode import Decoding
from archiver.upkeep.reprocess.report import ReprocessFinished, ReprocessObserver, ReprocessReport
from archiver.upkeep.reprocess.rounds import Rounds, error_columns
from catalog.iceberg.properties import metrics_properties
from catalog.iceberg.schema_change import SchemaChange, merge
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from schema_mapping.field_ids import Assignment, assign


class Reprocess:
    """Decodes a topic's rows with `__err__` again.

    `engine` is Spark by default, started only if there is work.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        wanted: ErrorFilter | None = None,
        observer: ReprocessObserver = ignore,
        *,
        dry_run: bool = False,
        engine: Engine | None = None,
        formats: SegmentFormats = FORMATS,
    ) -> None:
        self._config = config
        self._name = topic
        self._wanted = wanted or ErrorFilter()
        self._observer = all_of(observer)
        self._dry_run = dry_run
        self._engine = engine
        self._formats = formats

    def run(self) -> ReprocessReport:
        """Reprocess, and commit once.

        Raises errors of the configuration, the schema or the servers. The failure of one file is in the report, and the
        others go on.
        """
        started = time.monotonic()
        settings, section = self._checked(), self._config.schema_registry
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            archived = find_archived(self._config, self._name, registry=registry, catalog=catalog)
            schemas = TopicSchemas.read_or_recall(settings, section, known=archived.topic, registry=registry)

            @cache
            def engine() -> Engine:
                return self._engine or _start_spark(self._config, closing)

            work, assignment = self._begin(archived, schemas, engine, registry=registry, catalog=catalog)
            commit_id = work.run(archived.table, SchemaChange.of(assignment))
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
        """The topic's settings, after all checks that need no server."""
        settings = self._config.topic(self._name)
        if isinstance(settings.key, RawFormat) and isinstance(settings.value, RawFormat):
            raise ConfigError(
                "The topic's section names no schema to decode with: give its `key` or `value` one", topic=self._name
            )
        TopicSchemas.check(settings, self._config.schema_registry)
        if self._engine is None:
            check_spark(self._config.spark)
        return settings

    def _begin(
        self,
        archived: ArchivedTopic,
        schemas: TopicSchemas,
        engine: Callable[[], Engine],
        *,
        registry: Registry,
        catalog: TableCatalog,
    ) -> tuple[Rounds, Assignment]:
        """Settle what an earlier run left, and store the columns in registry and journal. Not in a dry run."""
        manifests = ManifestReader(error_columns(archived.table), PlanCache.below(self._config.archive.spool))
        journal = Journal.of(self._config).of_table(archived.table)
        if not self._dry_run:
            settle_rewrites(archived.topic, registry, catalog, manifests, journal)
        assignment = self._assign(schemas, archived, registry)
        pass_point(FaultPoint.AFTER_ASSIGN)
        if not self._dry_run:
            if schemas.schema_registry is not None:
                registry.last_known.remember_schemas(archived.topic, schemas.schema_registry, schemas.news)
            journal.keep_schemas(archived.topic, registry)
        clean_spool(self._config.archive.spool)
        work = Rounds(
            _target(self._config, self._formats, schemas, archived, assignment),
            self._wanted,
            engine=engine,
            registry=registry,
            catalog=catalog,
            manifests=manifests,
            journal=journal,
            observer=self._observer,
            dry_run=self._dry_run,
        )
        return work, assignment

    def _assign(self, schemas: TopicSchemas, archived: ArchivedTopic, registry: Registry) -> Assignment:
        settings = schemas.config
        options = mapping_options(settings)
        if self._dry_run:
            state = registry.ledger.load(archived.topic).at_least(archived.table.last_column_id)
            return assign(
                state,
                key=schemas.key,
                value=schemas.value,
                options=options,
                partition_source=archived.table.partition_source,
            )
        return registry.ledger.assign(
            archived.topic,
            key=schemas.key,
            value=schemas.value,
            table=archived.table,
            options=options,
            partition_source=archived.table.partition_source,
        )


def _start_spark(config: Config, closing: ExitStack) -> Engine:
    from archiver.engine.spark import SparkEngine

    return closing.enter_context(SparkEngine.start(config.spark))


def _target(
    config: Config, formats: SegmentFormats, schemas: TopicSchemas, archived: ArchivedTopic, assignment: Assignment
) -> ReprocessTarget:
    table = archived.table
    change = SchemaChange.of(assignment)
    schema = merge(change.for_table(table.schema, table.ledger_version) or change.adding, table.schema)
    return ReprocessTarget(
        topic=archived.topic.topic,
        decoding=Decoding(row=assignment.row, key_envelope=schemas.key_envelope, value_envelope=schemas.value_envelope),
        mappings={each.version: each.mapping for each in assignment.state.versions},
        column_names={identifier: schema.find_field(identifier).name for identifier in schema.field_ids},
        table_properties={**table.properties, **metrics_properties(schema, table.properties)},
        objects=archived.objects,
        formats=formats,
        spool=config.archive.spool,
    )
