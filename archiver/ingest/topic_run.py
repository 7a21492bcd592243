"""One topic in one run of the job: plans its waves, takes its tasks' results, commits them, and keeps the account.

Errors stay with the partition or topic they happened to; a partition that failed for good is left out of later waves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from archiver.config.model import TopicConfig
from archiver.errors import NoProgress, TaskInterrupted
from archiver.fault_points import FaultPoint, pass_point
from archiver.ingest.broker import BrokerClient
from archiver.ingest.committing import commit_pending
from archiver.ingest.observer import JobObserver
from archiver.ingest.plan import PlannedRange, plan_topic
from archiver.ingest.report import PartitionReport, TopicReport
from archiver.ingest.task_values import TaskMetrics, TaskResult
from archiver.ingest.topic_table import TopicTable
from archiver.ingest.views import look
from catalog.model import PartitionOffset, TranslatedRange
from catalog.registry import Registry
from catalog.tables import TableCatalog
from schema_mapping.errors import ContextError

TRIES = 3
"""How often in a row a partition's task may end in a retryable error before the run gives it up."""


class TopicRun:
    """A topic's run, from its opened table on."""

    def __init__(
        self,
        config: TopicConfig,
        opened: TopicTable,
        *,
        brokers: BrokerClient,
        registry: Registry,
        catalog: TableCatalog,
        observer: JobObserver,
    ) -> None:
        self.config = config
        self.opened = opened
        self._brokers = brokers
        self._registry = registry
        self._catalog = catalog
        self._observer = observer
        self._table_offsets: Mapping[int, PartitionOffset] = {}
        self._until: dict[int, int] = {}
        self._tries: Counter[int] = Counter()
        self._partitions: dict[int, PartitionReport] = {}
        self._metrics = TaskMetrics()
        self._commits = 0
        self._error: ContextError | None = None

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.config.name

    @property
    def failed(self) -> bool:
        """Whether the topic as a whole can't go on in this run."""
        return self._error is not None

    def fail(self, error: ContextError) -> None:
        """Note that the topic as a whole can't go on in this run."""
        self._error = self._error or error
        self._observer.failed(self.name, None, error)

    def plan(self) -> tuple[PlannedRange, ...]:
        """The ranges of the next wave, up to where the logs ended when the run first looked; none where all is done."""
        given_up = [partition for partition, report in self._partitions.items() if report.error]
        view = look(
            self.opened,
            self.config.start_from,
            brokers=self._brokers,
            registry=self._registry,
            catalog=self._catalog,
            without=given_up,
        )
        self._table_offsets = view.table_offsets
        plan = plan_topic(self.name, view.partitions)
        for partition, error in {**view.leaderless, **plan.failed}.items():
            self._give_up(partition, error)
        for each in view.partitions:
            self._until.setdefault(each.partition, each.last_stable)
        capped = [replace(each, end_offset=min(each.end_offset, self._until[each.partition])) for each in plan.ranges]
        return tuple(each for each in capped if each.start_offset < each.end_offset)

    def take(self, planned: PlannedRange, result: TaskResult) -> None:
        """Stage what a task covered, and judge the error that ended it."""
        self._metrics += result.metrics
        self._observer.task_finished(self.name, planned, result)
        if result.ranges:
            self._stage(result.ranges)
            self._tries[planned.partition] = 0
        if result.error is not None:
            self._judge(planned.partition, result.error)
        elif not result.ranges:
            self._judge(
                planned.partition,
                NoProgress(
                    "The brokers gave nothing of a range they have", topic=self.name, offset=planned.start_offset
                ),
            )

    def commit(self) -> None:
        """Bring everything staged for the topic into its table, what an earlier run left included."""
        self._commits += commit_pending(self.opened, self._registry, self._catalog, self._landed)

    def report(self) -> TopicReport:
        """The account so far."""
        return TopicReport(
            topic=self.name,
            table=self.config.table,
            partitions=tuple(self._partitions[partition] for partition in sorted(self._partitions)),
            commits=self._commits,
            metrics=self._metrics,
            error=self._error,
        )

    def _stage(self, ranges: Sequence[TranslatedRange]) -> None:
        pass_point(FaultPoint.BEFORE_STAGE)
        self._registry.stage(self.opened.topic, ranges, table_offsets=self._table_offsets)
        pass_point(FaultPoint.AFTER_STAGE)

    def _landed(self, ranges: Sequence[TranslatedRange]) -> None:
        for partition in sorted({one.partition for one in ranges}):
            own = sorted((one for one in ranges if one.partition == partition), key=lambda one: one.start_offset)
            self._partitions[partition] = self._report_of(partition).committed(own)
        self._observer.committed(self.name, ranges)

    def _judge(self, partition: int, error: ContextError) -> None:
        if isinstance(error, TaskInterrupted):
            return
        self._tries[partition] += 1
        if not (error.retryable or isinstance(error, NoProgress)) or self._tries[partition] >= TRIES:
            self._give_up(partition, error)

    def _give_up(self, partition: int, error: ContextError) -> None:
        self._partitions[partition] = replace(self._report_of(partition), error=error)
        self._observer.failed(self.name, partition, error)

    def _report_of(self, partition: int) -> PartitionReport:
        return self._partitions.get(partition) or PartitionReport(partition=partition)
