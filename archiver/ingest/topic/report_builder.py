"""Build the report of a topic's run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from archiver.errors import NoProgress, TaskInterrupted
from archiver.ingest.events import Failed, JobObserver, RangesCommitted, SchemaDoubted
from archiver.ingest.report import PartitionReport, TopicReport
from archiver.ingest.task.values import TaskMetrics
from catalog.errors import CatalogUnreachable
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

TRIES = 3
"""A partition is given up after retryable errors in this many waves in a row."""


class TopicReportBuilder:
    """After `acceptable` errors a partition is retried."""

    def __init__(
        self,
        topic: str,
        table: str,
        observer: JobObserver,
        *,
        acceptable: tuple[type[ContextError], ...] = (),
    ) -> None:
        self._topic = topic
        self._table = table
        self._observer = observer
        self._acceptable = acceptable
        self._partitions: dict[int, PartitionReport] = {}
        self._tries: Counter[int] = Counter()
        self._judged: set[int] = set()
        self._error: ContextError | None = None
        self._away: CatalogUnreachable | None = None
        self._warning: ContextError | None = None
        self._left_out: Mapping[int, ContextError] = {}
        self.metrics = TaskMetrics()
        self.commits = 0

    @property
    def failed(self) -> bool:
        return self._error is not None

    @property
    def given_up(self) -> tuple[int, ...]:
        return tuple(partition for partition, report in self._partitions.items() if report.error)

    def fail(self, error: ContextError) -> None:
        self._error = self._error or error
        self._observer(Failed(topic=self._topic, partition=None, error=error))

    def warn(self, error: ContextError) -> None:
        self._warning = self._warning or error
        self._observer(Failed(topic=self._topic, partition=None, error=error))

    def catalog_away(self, error: CatalogUnreachable) -> None:
        if self._away is None:
            self._observer(Failed(topic=self._topic, partition=None, error=error))
        self._away = error

    def catalog_answered(self) -> None:
        self._away = None

    def left_out(self, errors: Mapping[int, ContextError]) -> None:
        """Left out by the last commit. Their ranges stay staged."""
        for partition in sorted(errors.keys() - self._left_out.keys()):
            self._observer(Failed(topic=self._topic, partition=partition, error=errors[partition]))
        self._left_out = errors

    def give_up(self, partition: int, error: ContextError) -> None:
        if self._of(partition).error is None:
            self._partitions[partition] = replace(self._of(partition), error=error)
            self._observer(Failed(topic=self._topic, partition=partition, error=error))

    def begin_wave(self) -> None:
        self._judged.clear()

    def progressed(self, partition: int) -> None:
        self._tries[partition] = 0

    def judge(self, partition: int, error: ContextError) -> None:
        """TaskInterrupted is no error."""
        if isinstance(error, TaskInterrupted):
            return
        if partition not in self._judged:
            self._judged.add(partition)  # the tasks of a cut backlog fail together, and that is one try
            self._tries[partition] += 1
        again = error.retryable or isinstance(error, (NoProgress, *self._acceptable))
        if not again or self._tries[partition] >= TRIES:
            self.give_up(partition, error)

    def committed(self, ranges: Sequence[TranslatedRange]) -> None:
        for partition in sorted({range_.partition for range_ in ranges}):
            own = sorted(
                (range_ for range_ in ranges if range_.partition == partition),
                key=lambda translated: translated.start_offset,
            )
            self._partitions[partition] = self._of(partition).committed(own)
        self._observer(RangesCommitted(topic=self._topic, ranges=tuple(ranges)))

    def doubt_schema(self) -> None:
        for part, fit in self.report().recognition.parts.items():
            if fit.doubt is not None:
                self._observer(SchemaDoubted(topic=self._topic, part=part, fit=fit, doubt=fit.doubt))

    def report(self) -> TopicReport:
        return TopicReport(
            topic=self._topic,
            table=self._table,
            partitions=tuple(map(self._reported, sorted(self._partitions.keys() | self._left_out.keys()))),
            commits=self.commits,
            metrics=self.metrics,
            error=self._error or self._warning or self._away,
        )

    def _reported(self, partition: int) -> PartitionReport:
        report = self._of(partition)
        return replace(report, error=report.error or self._left_out.get(partition))

    def _of(self, partition: int) -> PartitionReport:
        return self._partitions.get(partition) or PartitionReport(partition=partition)
