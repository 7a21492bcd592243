"""`archiver compact`: rewrite files as few sorted ones with the same records, byte for byte.

New files are read back. Safe beside archivers, reprocessing, expiry and other engines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from archiver.config import Config
from archiver.engine.choice import EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConfigError
from archiver.observer import all_of, ignore
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.journal_memory import JournalMemory
from archiver.storage.spool import clean_spool
from archiver.topics.partitioning import check_partitioning
from archiver.upkeep.archived_topic import ArchivedTopic, find_archived, known_topics
from archiver.upkeep.compact.choice import Budget, CompactLimits
from archiver.upkeep.compact.report import (
    CompactFinished,
    CompactObserver,
    CompactReport,
    GroupFailed,
    TopicCompaction,
)
from archiver.upkeep.compact.rounds import CompactRounds
from archiver.upkeep.compact.target import CompactTarget, NewPlaces
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from schema_mapping.errors import ContextError

HELD_BYTES = 128 << 20
LEAST_HELD = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """None means the topic's setting. `held_bytes` bounds a task's buffered rows in memory."""

    target_bytes: int | None = None
    min_files: int | None = None
    partitions: frozenset[int] = frozenset()
    held_bytes: int = HELD_BYTES
    saves_work: bool = False
    repartition: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.min_files is not None and self.min_files < 2:  # noqa: PLR2004 - one file has nothing to merge with
            raise ConfigError("--min-files: compaction merges at least 2 files", min_files=self.min_files)
        if self.held_bytes < LEAST_HELD:
            raise ConfigError("--memory: choose 1MiB or more, as each task buffers rows in memory")
        if self.target_bytes is not None and self.target_bytes < LEAST_HELD:
            raise ConfigError("--target-size: choose 1MiB or more, as smaller files cost a request each")


class Compact:
    """By default all topics that are registered and configured.

    `engine` (default Spark) is called only if there is work.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] = (),
        wish: Wish | None = None,
        observer: CompactObserver = ignore,
        *,
        budget: Budget | None = None,
        engine: Callable[[], Engine] | None = None,
        memory: JournalMemory | None = None,
    ) -> None:
        self._config = config
        self._topics = tuple(topics)
        self._wish = wish or Wish()
        self._observer = all_of(observer)
        self._budget = budget or Budget(commit_seconds=config.archive.max_commit_interval)
        self._engine = engine
        self._memory = memory

    def run(self) -> CompactReport:
        """Raises errors of configuration and servers. Failures of a topic or group are in the report."""
        started = time.monotonic()
        engines = EngineChoice(self._config.spark, starts=self._engine)
        if not self._wish.dry_run:
            engines.check()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            names = [row.topic for row in known_topics(self._config, self._topics, registry)]
            closing.enter_context(engines)
            done = tuple(self._topic(name, registry, catalog, engines) for name in names)
        report = CompactReport(topics=done, dry_run=self._wish.dry_run, seconds=time.monotonic() - started)
        self._observer(CompactFinished(report=report))
        return report

    def _topic(self, name: str, registry: Registry, catalog: TableCatalog, engines: EngineChoice) -> TopicCompaction:
        settings = self._config.topic(name)
        report = TopicCompaction(topic=name, table=settings.table)
        try:
            archived = find_archived(self._config, name, registry=registry, catalog=catalog, dry_run=self._wish.dry_run)
            rounds = self._rounds(archived, registry, catalog, report, engines)
            if self._wish.dry_run:
                report.planned = rounds.plan(archived.table, settles=False)
            else:
                clean_spool(self._config.archive.spool)
                rounds.run(archived.table)
        except ContextError as error:
            report.error = error
            self._observer(GroupFailed(topic=name, paths=(), error=error))
        return report

    def _rounds(
        self,
        archived: ArchivedTopic,
        registry: Registry,
        catalog: TableCatalog,
        report: TopicCompaction,
        engines: EngineChoice,
    ) -> CompactRounds:
        work = TableWork.of(self._config, archived.table, registry, catalog, self._memory)
        wish, settings = self._wish, archived.config
        places = self._places(archived) if wish.repartition else None
        limits = CompactLimits(
            target_bytes=wish.target_bytes or settings.target_file_size,
            min_files=wish.min_files or settings.compact_min_files,
            saves_work=wish.saves_work,
            partitions=wish.partitions,
            spec_id=places.spec_id if places else None,
        )
        report.target_bytes = limits.target_bytes
        report.partitioned_by = places.partitioning.by if places else None
        target = CompactTarget(
            files=RewriteTarget.of(
                archived.table, registry.ledger.load(archived.topic).versions, self._config, FORMATS
            ),
            target_bytes=limits.target_bytes,
            held_bytes=wish.held_bytes,
            places=places,
        )
        return CompactRounds(
            target, limits, self._budget, work, report=report, observer=self._observer, engines=engines
        )

    def _places(self, archived: ArchivedTopic) -> NewPlaces:
        """Raise PartitioningChanged if another engine changed the spec, ConfigError if the configuration differs."""
        table = archived.table
        check_partitioning(archived.config, table)
        return NewPlaces(
            spec_id=table.iceberg.metadata.default_spec_id,
            partitioning=table.partitioning,
            data_location=table.data_location,
            room=self._config.archive.spool_size // 2,
        )
