"""One topic in one run of the job: plans its waves, takes its tasks' results, stages and commits them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from archiver.commit.commit_staged import commit_pending
from archiver.commit.table_check import check_archive
from archiver.commit.tidying import tidy_by_chance
from archiver.config.model import TopicConfig
from archiver.errors import LogTruncated, NoProgress, SchemaRegistryError
from archiver.fault_points import FaultPoint, pass_point
from archiver.ingest.events import JobObserver, PartitionsSeen, StepFinished, TaskFinished
from archiver.ingest.plan.backlog import LEAST_OFFSETS, Backlog, BytesPerOffset
from archiver.ingest.plan.ranges import PlannedRange, lost_ranges, plan_topic
from archiver.ingest.plan.waiting import Waiting, WaitLimits
from archiver.ingest.report import TopicReport
from archiver.ingest.task.values import TaskResult
from archiver.ingest.topic.continuity import same_log
from archiver.ingest.topic.finished_ranges import FinishedRanges
from archiver.ingest.topic.inspection import (
    ArchivedOffsets,
    Prefetched,
    SeenTopic,
    archived_offsets,
    inspect_partitions,
)
from archiver.ingest.topic.opening import OpenedTopic
from archiver.ingest.topic.report_builder import TopicReportBuilder
from archiver.kafka.broker import BrokerClient
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.errors import CatalogUnreachable, RolledBack
from catalog.iceberg.expiry import Retention
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, TranslatedRange
from catalog.registry import Registry
from catalog.registry.last_known import KnownSchemas
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMemory:
    """How much an offset takes, since when records wait, and the partitions where one waits for the schema registry.

    `proven` is what `Continuity` found out, `begun` where partitions begin as far as the journal was told.
    """

    sizes: BytesPerOffset = field(default_factory=BytesPerOffset)
    waiting: Waiting = field(default_factory=Waiting)
    unanswered: set[int] = field(default_factory=set)
    proven: dict[int, PartitionOffset] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)


class TopicRun:
    """A topic's run, from its opened table on. `look_every` (seconds) is when the next run begins, None for never."""

    def __init__(
        self,
        config: TopicConfig,
        opened: OpenedTopic,
        *,
        brokers: BrokerClient,
        registry: Registry,
        catalog: TableCatalog,
        observer: JobObserver,
        memory: TopicMemory,
        look_every: float | None = None,
        accept_gaps: bool = False,
        formats: SegmentFormats = FORMATS,
    ) -> None:
        self.config = config
        self.opened = opened
        self._brokers = brokers
        self._registry = registry
        self._catalog = catalog
        self._observer = observer
        self._sizes = memory.sizes
        self._waiting = memory.waiting
        self._unanswered = memory.unanswered
        self._proven = memory.proven
        self._begun = memory.begun
        self._look_every = look_every
        self._accept_gaps = accept_gaps
        self._formats = formats
        self._table = opened.table
        self._finished: dict[int, FinishedRanges] = {}
        self._fence: Mapping[int, PartitionOffset] = {}
        self._until: dict[int, int] = {}
        self._is_waiting = False
        self._report = TopicReportBuilder(self.name, config.table, observer, accept_gaps=accept_gaps)

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.config.name

    @property
    def failed(self) -> bool:
        """Whether the topic as a whole can't go on in this run."""
        return self._report.failed

    @property
    def is_waiting(self) -> bool:
        """Whether the last plan left a partition out because it has few and recent records; a later wave may take it.

        A topic that had nothing to plan and waits for nothing is left out of the run's later waves.
        """
        return self._is_waiting

    def fail(self, error: ContextError) -> None:
        """Note that the topic as a whole can't go on in this run."""
        self._report.fail(error)

    def begin(self) -> None:
        """Commit what an earlier run left, and look whether the table still has what was archived.

        Raises RolledBack where it was set back: the topic stops. Rows that others removed are told, and it goes on.
        """
        with suppress(RolledBack):  # told below, with all that is missing
            self.commit()
        error: ContextError | None
        try:
            error = check_archive(
                self.opened.topic,
                self._registry,
                partial(self._catalog.load, self.opened.topic),
                known=None if self.opened.table.is_recalled else self.opened.table,
                formats=self._formats,
            ).error
        except CatalogUnreachable:
            return
        except ContextError as unreadable:
            error = unreadable
        if isinstance(error, RolledBack):
            raise error
        if error is not None:
            self._report.warn(error)

    @property
    def given_up(self) -> tuple[int, ...]:
        """The partitions that can't go on in this run."""
        return self._report.given_up

    def archived_offsets(self, catalog: TableCatalog) -> ArchivedOffsets:
        """How far the topic is archived, asked of a catalog's connection that may be another thread's."""
        return archived_offsets(self.opened, registry=self._registry, catalog=catalog)

    def plan(self, prefetched: Prefetched) -> tuple[Backlog, ...]:
        """What is left to archive, up to where the logs ended when the run first looked. Empty once all is archived.

        A partition with few and recent records is left out if the job will look again: see `is_waiting`. Raises the
        error that `prefetched` has in place of an answer.
        """
        if isinstance(prefetched.archived, ContextError):
            raise prefetched.archived
        seen = inspect_partitions(
            self.opened,
            self.config.start_from,
            archived=prefetched.archived,
            bounds=prefetched.bounds,
            brokers=self._brokers,
            registry=self._registry,
            catalog=self._catalog,
            without=self._report.given_up,
            proven=self._proven,
            formats=self._formats,
        )
        self._table = seen.table
        self.opened = replace(self.opened, table=self.opened.table.with_storage_of(seen.table))
        self._observer(PartitionsSeen(topic=self.name, partitions=seen.partitions))
        plan = plan_topic(self.name, seen.partitions, accept_gaps=self._accept_gaps)
        for partition, error in {**seen.unknown, **plan.failed}.items():
            self._report.give_up(partition, error)
        for each in seen.partitions:
            self._until.setdefault(each.partition, each.last_stable)
            self._waiting.saw(each.partition, archived=each.next_offset, end=each.last_stable)
        self._keep_starts({each.partition: each.next_offset for each in seen.partitions if each.known is None})
        self._fence = seen.table_offsets | {
            each.partition: PartitionOffset(next_offset=each.start_offset)
            for each in plan.ranges
            if each.partition not in seen.known  # a first range may start anywhere, but not after a failed task's
        }
        self._fence |= {each: PartitionOffset(next_offset=start) for each, (start, _) in plan.lost.items()}
        self._report.begin_wave()
        self._record_loss(seen, plan.lost)
        self._estimate(seen, plan.ranges)
        self._is_waiting = False
        return tuple(backlog for each in plan.ranges if (backlog := self._backlog(each)) is not None)

    def take(self, planned: PlannedRange, result: TaskResult) -> None:
        """Stage what a task covered, and judge the error that ended it."""
        self._report.metrics += result.metrics
        self._observer(TaskFinished(topic=self.name, planned=planned, result=result))
        self._remember(result.learned)
        finished = self._finished[planned.partition]
        is_head = planned.start_offset == finished.next
        if result.ranges:
            self._learn(planned.partition, result)
            before = finished.next
            self._stage(finished.push(result.ranges))
            if finished.next > before:
                self._report.progressed(planned.partition)
            if finished.torn:
                self._report.judge(
                    planned.partition,
                    LogTruncated(
                        "What was read after this offset can't be shown to be of the log that was read before it "
                        "(an unclean leader election, or nobody answers). It is read again",
                        topic=self.name,
                        partition=planned.partition,
                        offset=finished.next,
                    ),
                )
        if isinstance(result.error, SchemaRegistryError):
            self._unanswered.add(planned.partition)
        elif is_head:
            self._unanswered.discard(planned.partition)
        if result.error is not None:
            self._report.judge(planned.partition, result.error)
        elif not result.ranges and is_head:
            self._report.judge(
                planned.partition,
                NoProgress(
                    "The brokers gave nothing of a range they have",
                    topic=self.name,
                    partition=planned.partition,
                    offset=planned.start_offset,
                ),
            )

    def commit(self) -> None:
        """Bring everything staged for the topic into its table, what an earlier run left included.

        While the catalog doesn't answer it stays staged, and the run goes on. So does what is staged of a partition
        that is ahead of the table.
        """
        started = time.perf_counter()
        try:
            done = commit_pending(self.opened.staged, self._registry, self._catalog, self._report.committed)
        except CatalogUnreachable as error:
            self._report.catalog_away(error)
            return
        self._report.catalog_answered()
        self._report.left_out(done.ahead)
        if done.is_new:
            self._report.commits += 1
            self._observer(StepFinished(topic=self.name, step="commit", seconds=time.perf_counter() - started))
            self._catalog.housekeep(self._table, Retention(seconds=self.config.snapshot_retention))
            tidy_by_chance(self.opened.staged, self._registry)

    def finish(self) -> None:
        """Stage what still waits after a gap. The registry keeps it as rejected, unless others filled the gap."""
        self._stage([one for finished in self._finished.values() for one in finished.leftover()])

    def report(self) -> TopicReport:
        """The account so far."""
        return self._report.report()

    def _backlog(self, planned: PlannedRange) -> Backlog | None:
        partition = planned.partition
        finished = self._finished.get(partition)
        if finished is None:
            finished = FinishedRanges(planned.start_offset, partial(same_log, self._brokers, self.name, partition))
            self._finished[partition] = finished
        self._stage(finished.restart(planned.start_offset, epoch=planned.leader_epoch))
        spans = finished.spans(min(planned.end_offset, self._until[partition]))
        if not spans:
            return None
        backlog = Backlog(
            partition=partition,
            spans=spans,
            leader_epoch=planned.leader_epoch,
            bytes_per_offset=self._sizes.of(partition),
            last_epoch=planned.last_epoch,
            follows=planned.start_offset,
        )
        if not self._is_ripe(backlog):
            self._is_waiting = True
            return None
        # Where a record waits for the schema registry, nothing after it can be kept: only its own batch is tried.
        return replace(backlog, spans=((spans[0][0], spans[0][0] + 1),)) if partition in self._unanswered else backlog

    def _is_ripe(self, backlog: Backlog) -> bool:
        if self._look_every is None:
            return True
        limits = WaitLimits(
            max_lag=self.config.max_lag,
            min_bytes=min(self.config.min_file_size, self.config.target_file_size),
            look_every=self._look_every,
        )
        return self._waiting.is_ripe(backlog.partition, size=backlog.size, limits=limits)

    def _keep_starts(self, starts: Mapping[int, int]) -> None:
        """Have the journal know where partitions begin, before anything of them is staged."""
        if not starts.items() <= self._begun.items():
            self.opened.journal.keep_starts(starts)
            self._begun.update(starts)

    def _record_loss(self, seen: SeenTopic, lost: Mapping[int, tuple[int, int]]) -> None:
        """Record what the logs lost, in a commit of its own."""
        if not lost:
            return
        version = self.opened.row.schema_version
        self._stage(lost_ranges(self.name, lost, known=seen.known, schema_version=version))
        self.commit()

    def _estimate(self, seen: SeenTopic, ranges: Sequence[PlannedRange]) -> None:
        """Ask the brokers how large the logs are that nothing is known of, where it may matter."""
        logs = {each.partition: each.last_stable - each.log_start for each in seen.partitions}
        asked = [
            each.partition
            for each in ranges
            if self._sizes.lacks(each.partition) and each.end_offset - each.start_offset >= LEAST_OFFSETS
        ]
        if asked:
            for partition, size in self._brokers.log_sizes(self.name, asked).items():
                self._sizes.learn(partition, offsets=logs[partition], size=size)

    def _remember(self, schemas: Mapping[int, bytes]) -> None:
        """Keep what the schema registry told a task, for later tasks, and for times when it is down."""
        if schemas and self.opened.schema_registry is not None:
            news = KnownSchemas(schemas=schemas)
            self._registry.last_known.remember_schemas(self.opened.topic, self.opened.schema_registry, news)
            self.opened = self.opened.knowing(schemas)

    def _learn(self, partition: int, result: TaskResult) -> None:
        if result.error is not None:
            return
        offsets = result.ranges[-1].end_offset - result.ranges[0].start_offset
        self._sizes.learn(partition, offsets=offsets, size=result.metrics.source_bytes)

    def _stage(self, ranges: Sequence[TranslatedRange]) -> None:
        if not ranges:
            return
        pass_point(FaultPoint.BEFORE_STAGE)
        started = time.perf_counter()
        self._registry.files.stage(self.opened.topic, ranges, table_offsets=self._fence)
        self._observer(StepFinished(topic=self.name, step="stage", seconds=time.perf_counter() - started))
        pass_point(FaultPoint.AFTER_STAGE)
