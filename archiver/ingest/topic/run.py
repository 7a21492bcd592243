"""One topic in a run of the job: plan, take results, stage and commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from archiver.commit.commit_staged import StagedTopic, commit_pending
from archiver.commit.compare_rows import Allowance
from archiver.commit.file_values import keep_values
from archiver.commit.lacking_ranges import add_lacking_ranges
from archiver.config.model import TopicConfig
from archiver.errors import CorruptBatch, LogTruncated, NoProgress, ParseHalted, SchemaRegistryError, UnrecognizedHalted
from archiver.fault_points import FaultPoint, pass_point
from archiver.ingest.events import JobObserver, PartitionsSeen, SchemaChanged, StepFinished, TaskFinished
from archiver.ingest.plan.backlog import LEAST_OFFSETS, Backlog
from archiver.ingest.plan.ranges import PlannedRange, plan_topic
from archiver.ingest.plan.waiting import WaitLimits
from archiver.ingest.report import TopicReport
from archiver.ingest.task.values import TaskResult
from archiver.ingest.topic.acceptance import NOTHING_ACCEPTED, AcceptedLosses
from archiver.ingest.topic.finished_ranges import FinishedRanges, PartitionRun
from archiver.ingest.topic.kept_rows import KeptRows
from archiver.ingest.topic.memory import TopicMemory
from archiver.ingest.topic.prefetch import Prefetched
from archiver.ingest.topic.report_builder import TopicReportBuilder
from archiver.ingest.topic.unreadable_offsets import UnreadableOffsets
from archiver.kafka.broker import BrokerClient
from archiver.observer import ignore
from archiver.storage.formats import FORMATS
from archiver.topics.archive_reader import ArchiveReader
from archiver.topics.continuity import UNPROVEN_EPOCHS, same_log
from archiver.topics.inspection import ArchivedOffsets, SeenTopic, archived_offsets, inspect_partitions
from archiver.topics.lost_ranges import lost_ranges
from archiver.topics.opening import OpenedTopic, for_records
from archiver.topics.partition_inspector import PartitionInspector
from catalog.errors import CatalogUnreachable, RolledBack
from catalog.iceberg.expiry import SnapshotRetention
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, SchemaIdentity, Staged, TranslatedRange
from catalog.offset_range import OffsetRange
from catalog.registry import Registry
from catalog.registry.last_known import KnownSchemas
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)


class RunServers(Protocol):
    brokers: BrokerClient
    registry: Registry
    catalog: TableCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """The next run is in `look_every` seconds, None for never. `after_commit` must not raise in its thread."""

    look_every: float | None = None
    accepts: AcceptedLosses = NOTHING_ACCEPTED
    after_commit: Callable[[StagedTopic], None] = ignore


class TopicRun:
    def __init__(
        self,
        config: TopicConfig,
        opened: OpenedTopic,
        servers: RunServers,
        *,
        observer: JobObserver,
        memory: TopicMemory,
        terms: RunTerms | None = None,
    ) -> None:
        terms = terms or RunTerms()
        self.config = config
        self.opened = opened
        self._brokers, self._registry, self._catalog = servers.brokers, servers.registry, servers.catalog
        self._observer = observer
        self._memory = memory
        self._terms = terms
        self._unreadable = UnreadableOffsets(
            self.name, opened.topic.topic_id, self._brokers, accepts=terms.accepts.unreadable
        )
        self._table = opened.table
        self._partitions: dict[int, PartitionRun] = {}
        self._fence: Mapping[int, PartitionOffset] = {}
        self._is_waiting = self._is_as_opened = False
        self._has_uncommitted = False
        self._report = TopicReportBuilder(self.name, config.table, observer, acceptable=terms.accepts.errors)
        self._kept = KeptRows(self._registry, self._catalog, self._report, formats=FORMATS)

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def failed(self) -> bool:
        return self._report.failed

    @property
    def is_waiting(self) -> bool:
        """Whether the last plan left out few recent records."""
        return self._is_waiting

    @property
    def is_done(self) -> bool:
        """Staged ranges don't count: a commit may refuse them."""
        if self._report.given_up:
            return False
        planned = [progress for progress in tuple(self._partitions.values()) if progress.finished is not None]
        return bool(planned) and all(progress.in_table >= progress.until for progress in planned)

    def fail(self, error: ContextError) -> None:
        self._report.fail(error)

    def begin(self, *, has_staged: bool) -> None:
        """Commit an earlier run's ranges, add ranges that a restored registry lacks, check the table.

        Raises RegistryBehind if these can't be determined, RolledBack if the table was rolled back.
        """
        self._is_as_opened = not has_staged
        if has_staged:
            with suppress(RolledBack):  # told below, with all that is missing
                self.commit()
        if not self.opened.table.is_recalled:
            add_lacking_ranges(self.opened.table, self._registry, self.opened.journal, FORMATS)
        self._kept.look(self.opened)

    def compare(self, allowance: Allowance) -> None:
        self._kept.compare(self.opened, allowance)

    @property
    def given_up(self) -> tuple[int, ...]:
        return self._report.given_up

    def archived_offsets(self, catalog: TableCatalog) -> ArchivedOffsets:
        return archived_offsets(self.opened, registry=self._registry, catalog=catalog, is_as_opened=self._is_as_opened)

    def plan(self, prefetched: Prefetched) -> tuple[Backlog, ...]:
        """Return the backlog up to the log ends first seen. Raises the error in `prefetched`."""
        self._is_as_opened = False
        if isinstance(prefetched.archived, ContextError):
            raise prefetched.archived
        archived, topic = prefetched.archived, self.opened.topic
        inspector = PartitionInspector(
            name=topic.topic,
            topic_id=topic.topic_id,
            topic=topic,
            start_from=self.config.start_from,
            brokers=self._brokers,
            registry=self._registry,
            archived=lambda: ArchiveReader.of(archived.table, self._registry, self._catalog, FORMATS),
            proven=self._memory.proven,
        )
        seen = inspect_partitions(inspector, archived, bounds=prefetched.bounds, without=self._report.given_up)
        self._table = seen.table
        self.opened = replace(self.opened, table=self.opened.table.with_storage_of(seen.table))
        self._observer(PartitionsSeen(topic=self.name, partitions=seen.partitions))
        self._warn_of_epochs(seen)
        spans, refused = self._unreadable.spans(seen.partitions)
        partitions = [partition for partition in seen.partitions if partition.partition not in refused]
        plan = plan_topic(self.name, partitions, accept_gaps=self._terms.accepts.gaps, unreadable=spans)
        for partition, error in {**seen.unknown, **refused, **plan.failed}.items():
            self._report.give_up(partition, error)
        for seen_partition in seen.partitions:
            self._progress(seen_partition.partition).ends_at(seen_partition.last_stable)
            self._memory.waiting.saw(
                seen_partition.partition, archived=seen_partition.next_offset, end=seen_partition.last_stable
            )
        self._keep_starts(
            {partition.partition: partition.next_offset for partition in seen.partitions if partition.known is None}
        )
        self._fence = seen.table_offsets | {
            range_.partition: PartitionOffset(next_offset=range_.start_offset)
            for range_ in plan.ranges
            if range_.partition not in seen.known  # a first range may start anywhere, but not after a failed task's
        }
        self._fence |= {offsets.partition: PartitionOffset(next_offset=offsets.first) for offsets in plan.lost}
        self._report.begin_wave()
        self._record_loss(seen, plan.lost)
        self._estimate(seen, plan.ranges)
        self._is_waiting = False
        backlogs = tuple(backlog for range_ in plan.ranges if (backlog := self._backlog(range_)) is not None)
        if backlogs:
            self._use_schema()
        else:  # no task of this wave will end with a commit
            self._commit_rest()
        return backlogs

    def take(self, planned: PlannedRange, result: TaskResult) -> None:
        self._report.metrics += result.metrics
        self._observer(TaskFinished(topic=self.name, planned=planned, result=result))
        self._remember(result.learned)
        finished = self._progress(planned.partition).ranges
        is_head = planned.start_offset == finished.next
        if result.ranges:
            self._learn(planned.partition, result)
            staged = self._stage(finished.push(result.ranges))
            if staged.rejected:  # others have staged their offsets
                self._rejoin(planned.partition)
            if staged.accepted:
                self._report.progressed(planned.partition)
            elif staged.rejected and is_head:
                self._judge_rejected(planned)
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
        self._unreadable.note(planned.partition, result.error)
        if isinstance(result.error, (SchemaRegistryError, ParseHalted, UnrecognizedHalted)):
            self._memory.held_up.add(planned.partition)
        elif is_head:
            self._memory.held_up.discard(planned.partition)
        self._judge(planned, result, is_head=is_head)

    def commit(self, catalog: TableCatalog | None = None) -> None:
        """Ranges stay staged while the catalog is down or a partition is ahead.

        Another thread may call it with its `catalog`, if nothing else uses the topic.
        """
        catalog = catalog or self._catalog
        started = time.perf_counter()
        self._has_uncommitted = False
        try:
            done = commit_pending(self.opened.staged, self._registry, catalog, self._landed)
        except CatalogUnreachable as error:
            self._report.catalog_away(error)
            return
        self._report.catalog_answered()
        self._report.left_out(done.ahead)
        if done.is_new:
            self._report.commits += 1
            self._observer(StepFinished(topic=self.name, step="commit", seconds=time.perf_counter() - started))
            catalog.housekeep(self._table, SnapshotRetention(seconds=self.config.snapshot_retention))
            self._terms.after_commit(self.opened.staged)

    def finish(self) -> None:
        """Handle ranges that wait after a gap.

        If other processes filled the gap, ranges of the same log are staged; the rest is kept as rejected.
        """
        waiting = {
            partition: progress.finished
            for partition, progress in tuple(self._partitions.items())
            if progress.finished is not None and progress.finished.is_waiting
        }
        self._rejoin(*waiting)
        left = [kept for finished in waiting.values() for kept in finished.leftover()]
        if left:
            reason = "it follows offsets that were not archived in its run"
            self._registry.files.keep_rejected(self.opened.topic, left, reason=reason)
        if not self.failed:
            self._commit_rest()
        if self.config.on_unrecognized != "ignore":
            self._report.doubt_schema()

    def report(self) -> TopicReport:
        return self._report.report()

    def _progress(self, partition: int) -> PartitionRun:
        """A commit's thread may see a partition first."""
        return self._partitions.setdefault(partition, PartitionRun())

    def _backlog(self, planned: PlannedRange) -> Backlog | None:
        partition = planned.partition
        progress = self._progress(partition)
        if progress.finished is None:
            continues = partial(same_log, self._brokers, self.name, partition)
            progress.finished = FinishedRanges(planned.start_offset, continues)
        self._stage(progress.finished.restart(planned.start_offset, epoch=planned.epochs.archived))
        spans = progress.finished.spans(min(planned.end_offset, progress.until))
        if not spans:
            return None
        backlog = Backlog(
            partition=partition,
            spans=spans,
            bytes_per_offset=self._memory.sizes.of(partition),
            epochs=planned.epochs,
            follows=planned.start_offset,
        )
        if not self._is_ripe(backlog):
            self._is_waiting = True
            return None
        # Where a record can't be taken, nothing after it can be kept: only its own batch is tried.
        return (
            replace(backlog, spans=((spans[0][0], spans[0][0] + 1),)) if partition in self._memory.held_up else backlog
        )

    def _use_schema(self) -> None:
        following = self.opened.next_version
        self.opened = for_records(self.opened, self._registry)
        if following is not None:
            version, changes = self.opened.row.schema_version, following.assignment.changes
            self._observer(SchemaChanged(topic=self.name, version=version, changes=changes))

    def _is_ripe(self, backlog: Backlog) -> bool:
        if self._terms.look_every is None:
            return True
        limits = WaitLimits(
            max_lag=self.config.max_lag,
            min_bytes=min(self.config.min_file_size, self.config.target_file_size),
            look_every=self._terms.look_every,
        )
        return self._memory.waiting.is_ripe(backlog.partition, size=backlog.size, limits=limits)

    def _landed(self, ranges: Sequence[TranslatedRange]) -> None:
        self._report.committed(ranges)
        for committed in ranges:
            progress = self._progress(committed.partition)
            progress.in_table = max(committed.end_offset, progress.in_table)

    def _commit_rest(self) -> None:
        if self._has_uncommitted:
            self.commit()

    def _keep_starts(self, starts: Mapping[int, int]) -> None:
        """Journal first offsets before anything is staged."""
        if not starts.items() <= self._memory.begun.items():
            self.opened.journal.keep_starts(starts)
            self._memory.begun.update(starts)

    def _warn_of_epochs(self, seen: SeenTopic) -> None:
        unproven = {partition.partition for partition in seen.partitions if not partition.proves_epochs}
        if unproven - self._memory.unproven:
            self._memory.unproven.update(unproven)
            _LOG.warning(UNPROVEN_EPOCHS, self.name)

    def _record_loss(self, seen: SeenTopic, lost: Sequence[OffsetRange]) -> None:
        if not lost:
            return
        self._stage(lost_ranges(self.name, lost, known=seen.known, schema_version=self.opened.row.schema_version))
        self.commit()

    def _estimate(self, seen: SeenTopic, ranges: Sequence[PlannedRange]) -> None:
        logs = {partition.partition: partition.last_stable - partition.log_start for partition in seen.partitions}
        asked = [
            range_.partition
            for range_ in ranges
            if self._memory.sizes.lacks(range_.partition) and range_.end_offset - range_.start_offset >= LEAST_OFFSETS
        ]
        if asked:
            for partition, size in self._brokers.log_sizes(self.name, asked).items():
                self._memory.sizes.learn(partition, offsets=logs[partition], size=size)

    def _remember(self, schemas: Mapping[SchemaIdentity, bytes]) -> None:
        if schemas and self.opened.schema_registry is not None:
            news = KnownSchemas(schemas=schemas)
            self._registry.last_known.remember_schemas(self.opened.topic, self.opened.schema_registry, news)
            self.opened = self.opened.knowing(schemas)

    def _learn(self, partition: int, result: TaskResult) -> None:
        if result.error is not None:
            return
        offsets = result.ranges[-1].end_offset - result.ranges[0].start_offset
        self._memory.sizes.learn(partition, offsets=offsets, size=result.metrics.source_bytes)

    def _judge_rejected(self, planned: PlannedRange) -> None:
        rejected = self._progress(planned.partition).rejected
        if planned.start_offset in rejected:
            self._report.judge(
                planned.partition,
                NoProgress(
                    "The table says again that it ends before offsets that the registry has as archived: the catalog"
                    " gives an older state of the table, or others archive the partition too",
                    topic=self.name,
                    table=self.config.table,
                    partition=planned.partition,
                    offset=planned.start_offset,
                ),
            )
        rejected.add(planned.start_offset)

    def _judge(self, planned: PlannedRange, result: TaskResult, *, is_head: bool) -> None:
        """A corrupt batch gives a partition up only after everything before it is archived."""
        if result.error is not None:
            if is_head or not isinstance(result.error, CorruptBatch):
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

    def _rejoin(self, *partitions: int) -> None:
        reached = self._registry.files.accepted_ends(self.opened.topic) if partitions else {}
        for partition in partitions:
            if (end := reached.get(partition)) is not None:
                self._stage(self._progress(partition).ranges.rejoin(end.next_offset, epoch=end.leader_epoch))

    def _stage(self, ranges: Sequence[TranslatedRange]) -> Staged:
        if not ranges:
            return Staged(accepted=(), rejected=())
        pass_point(FaultPoint.BEFORE_STAGE)
        started = time.perf_counter()
        staged = self._registry.files.stage(self.opened.topic, ranges, table_offsets=self._fence)
        self._has_uncommitted = self._has_uncommitted or bool(staged.accepted)
        keep_values(self._registry, self.opened.topic, [file for range_ in staged.accepted for file in range_.files])
        self._observer(StepFinished(topic=self.name, step="stage", seconds=time.perf_counter() - started))
        pass_point(FaultPoint.AFTER_STAGE)
        return staged
