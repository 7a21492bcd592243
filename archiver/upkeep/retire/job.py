"""`archiver expire`: retire the oldest records in commits that also advance first offsets.

Files are deleted when no snapshot needs them. Safe beside an archiver, and safe to repeat.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.trail import author
from archiver.commit.tidying import sum_up_journal
from archiver.config import Config
from archiver.config.model import TopicConfig
from archiver.engine.choice import HERE_BYTES, EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConfigError, ConsentMissing, blamed_file
from archiver.observer import all_of, ignore
from archiver.rewrite.rounds import commit_batches, in_rounds
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.upload_claims import UploadClaims
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.storage.journal_memory import JournalMemory
from archiver.upkeep.archived_topic import find_archived, known_topics
from archiver.upkeep.consent import GIVEN, Consent
from archiver.upkeep.known_holds import holds_in_force
from archiver.upkeep.removal.components import Component, reach_beside
from archiver.upkeep.removal.conditions import Below
from archiver.upkeep.removal.purge import PurgeTerms, confirmed_time, never, purge
from archiver.upkeep.removal.rewriting import Removal, RemovalResult
from archiver.upkeep.removal.work import RemovalWork
from archiver.upkeep.retire.consent import PlannedRemoval, RetirementConsent
from archiver.upkeep.retire.cut import RetireLimits, reach_of, whole_file_cuts
from archiver.upkeep.retire.edge import first_young_offsets
from archiver.upkeep.retire.plan import Batch, Retirement, groups_of, in_batches, retirement, without_failed
from archiver.upkeep.retire.report import (
    ExpireFailed,
    ExpireFinished,
    ExpireObserver,
    ExpireReport,
    FilesRetired,
    RetirementPlanned,
    TopicRetired,
)
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, new_id
from catalog.ranges.legal_holds import Hold, of_config
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.registry import Registry
from catalog.registry.removable import RemovableRange
from schema_mapping.errors import ContextError

REASON: Final = "expire"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireOptions:
    """`rows` also removes older rows of mixed files. Nothing starts after `is_over`.

    The default `clock` is this machine's, confirmed by Postgres.
    """

    rows: bool = False
    dry_run: bool = False
    clock: Callable[[], float] | None = None
    is_over: Callable[[], bool] = never
    memory: JournalMemory | None = None


class Expire:
    """By default all topics that are registered and configured.

    Default `limits` are `retention` and `retention_size`.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] = (),
        observer: ExpireObserver = ignore,
        *,
        limits: RetireLimits | None = None,
        options: ExpireOptions | None = None,
        engine: Engine | None = None,
        consent: Consent = GIVEN,
    ) -> None:
        if limits is not None and not topics:
            raise ConfigError("an offset or a time is that of a topic: name the topics that it is for")
        self._config = config
        self._topics = tuple(topics)
        self._observer = all_of(observer)
        self._limits = limits
        self._options = options or ExpireOptions()
        self._engine = engine
        self._consent = consent

    def run(self) -> ExpireReport:
        """Raises what stops all topics; a topic's failure is in the report."""
        started = time.monotonic()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            engines = closing.enter_context(EngineChoice(self._config.spark, self._engine, here_bytes=HERE_BYTES))
            now = self._options.clock() if self._options.clock else confirmed_time(registry)
            rows = known_topics(self._config, self._topics, registry)
            done = tuple(self._topic(row, registry, catalog, engines, now) for row in rows)
        report = ExpireReport(topics=done, dry_run=self._options.dry_run, seconds=time.monotonic() - started)
        self._observer(ExpireFinished(report=report))
        return report

    def _topic(
        self, topic: TopicRow, registry: Registry, catalog: TableCatalog, engines: EngineChoice, now: float
    ) -> TopicRetired:
        settings = self._config.topic(topic.topic)
        limits = self._limits or limits_of(settings, now)
        report = TopicRetired(
            topic=topic.topic,
            table=topic.table,
            has_limits=not limits.is_none,
            is_asked=self._limits is not None,
        )
        try:
            archived = find_archived(
                self._config, topic.topic, registry=registry, catalog=catalog, dry_run=self._options.dry_run
            )
            work = TopicExpiry(
                config=self._config,
                archived=archived,
                registry=registry,
                catalog=catalog,
                manifests=ManifestReader(cache=PlanCache.below(self._config.archive.spool)),
                journal=Journal.of(self._config, self._options.memory).of_table(archived.table),
                engine=engines.of_bytes,
                observer=self._observer,
                formats=FORMATS,
                is_over=self._options.is_over,
                consent=RetirementConsent.of(
                    settings,
                    self._limits,
                    topic=topic,
                    registry=registry,
                    consent=self._consent,
                    by=author(self._config.audit).principal,
                    now=now,
                ),
            )
            work.run(limits, report, rows=self._options.rows, dry_run=self._options.dry_run)
        except ContextError as error:
            report.error = error
            self._observer(ExpireFailed(topic=topic.topic, path=None, error=error))
        return report


def limits_of(settings: TopicConfig, now: float) -> RetireLimits:
    """`now` is in seconds since 1970."""
    time_ms = None if settings.retention is None else int((now - settings.retention) * 1_000)
    return RetireLimits(time_ms=time_ms, size_bytes=settings.retention_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicExpiry(RemovalWork):
    observer: ExpireObserver
    consent: RetirementConsent
    is_over: Callable[[], bool] = never

    def run(self, limits: RetireLimits, report: TopicRetired, *, rows: bool = False, dry_run: bool = False) -> None:
        """Retire by these limits, and delete files retired before. Fills `report`.

        Raises TableError, RegistryError and StorageError.
        """
        table = self.table
        if not dry_run:
            holds_in_force(self.topic, self.journal, self.registry, recalls=True)  # the purge asks the registry
            settle_rewrites(self, table, ends_silent=True)
            self.trail(self.topic).note_hold(is_held=self.archived.config.hold)
        missing: ConsentMissing | None = None
        if not limits.is_none:
            try:
                self._retire(limits, report, rows=rows, dry_run=dry_run)
            except ConsentMissing as error:
                missing = error  # what was retired before had consent, and goes all the same
            if dry_run:
                return
        if not dry_run:
            report.purged = purge(
                table,
                self,
                PurgeTerms(
                    grace_seconds=self.archived.config.snapshot_retention,
                    holds_all=self.archived.config.hold,
                    is_over=self.is_over,
                ),
            )
            report.stopped |= report.purged.stopped
            report.journal = sum_up_journal(self.journal, report.topic, self.is_over)
        if missing is not None:
            raise missing

    def _retire(self, limits: RetireLimits, report: TopicRetired, *, rows: bool, dry_run: bool) -> None:
        agreed: PlannedRemoval | None = None

        def attempt() -> bool | None:
            nonlocal agreed
            while True:
                holds = holds_in_force(self.topic, self.journal, self.registry, recalls=not dry_run)
                report.failures = {}
                planned, files, first_offsets = self._plan(limits, holds, report, rows=rows)
                report.held, report.kept = planned.held, planned.kept
                size = planned.files + sum(len(edge.files) for edge in planned.edges)
                self.observer(RetirementPlanned(topic=report.topic, files=size, rows=planned.rows))
                removal = PlannedRemoval.of(planned, files.values(), first_offsets)
                if dry_run:
                    _tell(report, planned)
                    report.needs_consent = self.consent.reasons(removal)
                    return True
                if not (removal.is_same(agreed) or (report.commits and removal.is_within(agreed))):
                    self.consent.check(removal, is_repeated=agreed is not None)
                    agreed = removal
                    if self.consent.consent.asks and removal.spans:  # the table may have changed meanwhile
                        continue
                return self._commit(planned, files, report, claims) or None

        with UploadClaims.of_run(self.registry, self.topic, is_noted=not dry_run) as claims:
            in_rounds(attempt, table=self.topic.table, may_be="they can be retired")

    def _plan(
        self, limits: RetireLimits, holds: Sequence[Hold], report: TopicRetired, *, rows: bool
    ) -> tuple[Retirement, Mapping[str, TableFile], Mapping[int, int]]:
        table = self.catalog.reload(self.table)
        cuts = self._cuts(limits, table, report, rows=rows)
        files = self._files(table, report)
        ranges = self._ranges(reach_of(cuts, files, table.offsets), files, table)  # before the table: so it has them
        table = self.catalog.reload(table)
        files = self._files(table, report)
        later = self._cuts(limits, table, report, rows=rows)
        planned = retirement(
            {partition: min(offset, later.get(partition, 0)) for partition, offset in cuts.items()},
            ranges=ranges,
            files=files,
            holds=(*of_config(hold=self.archived.config.hold), *holds),
            known=table.first_offsets,
            rows=rows,
        )
        return planned, {file.path: file for file in files}, table.first_offsets

    def _files(self, table: ArchiveTable, report: TopicRetired) -> tuple[TableFile, ...]:
        files = self.files(table)
        for path in (file.path for file in files if file.path in self.row_bounds.failures):
            self._fail(report, path, self.row_bounds.failures[path])
        return files

    def _ranges(
        self, reach: dict[int, int], files: Sequence[TableFile], table: ArchiveTable
    ) -> tuple[RemovableRange, ...]:
        while True:
            ranges = self.registry.retention.ranges(self.topic, below=reach)
            beside = reach_beside(ranges, files, table.offsets)
            further = {partition: max(end, reach.get(partition, 0)) for partition, end in beside.items()}
            if all(reach.get(partition, 0) == end for partition, end in further.items()):
                return ranges
            reach = reach | further

    def _cuts(self, limits: RetireLimits, table: ArchiveTable, report: TopicRetired, *, rows: bool) -> dict[int, int]:
        files = self._files(table, report)
        cuts = whole_file_cuts(limits, files, table.offsets)
        if not rows or limits.time_ms is None:
            return cuts
        ends = {partition: reached.next_offset for partition, reached in table.offsets.items()}
        selected = {
            partition: end for partition, end in ends.items() if not limits.partitions or partition in limits.partitions
        }
        exact = first_young_offsets(limits.time_ms, selected, files, self.target(table))
        for path, error in exact.failures.items():
            self._fail(report, path, error)
        offsets = {partition: max(cuts.get(partition, 0), offset) for partition, offset in exact.offsets.items()}
        return {partition: offset for partition, offset in offsets.items() if offset > 0}

    def _commit(
        self, planned: Retirement, known: Mapping[str, TableFile], report: TopicRetired, claims: UploadClaims
    ) -> bool:
        """Return False if other engines changed a file."""
        table = self.catalog.reload(self.table)
        planned, edges = self._edges(planned, table, report, claims)

        def batches() -> Iterator[Batch]:
            for batch in in_batches(
                planned.going, planned.edges, first_offsets=planned.first_offsets, known=table.first_offsets
            ):
                if self.is_over():
                    report.stopped = True
                    return
                yield batch

        def plan(batch: Batch, table: ArchiveTable) -> Rewrite | None:
            groups = (*groups_of(batch.going, _why(batch.first_offsets)), *(edges if batch.with_edges else ()))
            current = table.first_offsets
            moved = {
                partition: offset
                for partition, offset in batch.first_offsets.items()
                if offset > current.get(partition, 0)
            }
            if not groups and not moved:
                return None
            return Rewrite(
                commit_id=new_id(),
                reason=REASON,
                schema_version=table.ledger_version,
                groups=groups,
                first_offsets=moved,
            )

        def landed(batch: Batch, rewrite: Rewrite) -> None:
            report.commits.append(rewrite.commit_id)
            report.first_offsets |= rewrite.first_offsets
            report.files += sum(len(component.files) for component in batch.going)
            report.size_bytes += sum(component.size_bytes for component in batch.going)
            report.rows += sum(span.retired for group in rewrite.groups for span in group.all_spans)
            report.rewritten += sum(len(edge.paths) for edge in edges) if batch.with_edges else 0
            self.observer(FilesRetired(topic=report.topic, files=sum(len(group.paths) for group in rewrite.groups)))

        return commit_batches(self, table, batches(), known=known, plan=plan, landed=landed)

    def _edges(
        self, planned: Retirement, table: ArchiveTable, report: TopicRetired, claims: UploadClaims
    ) -> tuple[Retirement, list[RewriteGroup]]:
        """A component that fails stays, and its partitions begin with it."""
        removal = Removal(condition=Below(planned.first_offsets), fate="retired", why=_why(planned.first_offsets))
        made, failed = dict[int, RemovalResult](), list[Component]()
        for component, outcome in self.remove(planned.edges, removal, table, claims):
            if outcome.result is not None:
                made[id(component)] = outcome.result
                continue
            assert outcome.error is not None
            failed.append(component)
            paths = [file.path for file in component.files]
            path = blamed_file(outcome.error, paths) or next(iter(paths), "")
            partitions = sorted({range_.partition for range_ in component.ranges})
            self._fail(report, path, outcome.error.placed(topic=report.topic, partitions=partitions, file=path))
        left = without_failed(planned, failed, table.first_offsets)
        return left, [group for edge in left.edges if (group := made[id(edge)].group)]

    def _fail(self, report: TopicRetired, path: str, error: ContextError) -> None:
        if path not in report.failures:
            self.observer(ExpireFailed(topic=report.topic, path=path, error=error))
        report.failures[path] = error


def _tell(report: TopicRetired, planned: Retirement) -> None:
    report.first_offsets = dict(planned.first_offsets)
    report.rows, report.files, report.size_bytes = planned.rows, planned.files, planned.size_bytes
    report.rewritten = sum(len(edge.files) for edge in planned.edges)


def _why(first_offsets: Mapping[int, int]) -> str:
    starts = ", ".join(f"{partition} at {offset}" for partition, offset in sorted(first_offsets.items())[:5])
    return f"retired: partitions begin: {starts}"
