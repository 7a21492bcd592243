"""A job's progress as metrics and health."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from archiver.errors import TaskInterrupted
from archiver.ingest.observer import Step
from archiver.ingest.plan import PartitionView, PlannedRange
from archiver.ingest.report import JobReport
from archiver.ingest.task_values import TaskResult
from archiver.metrics.health import Health
from archiver.metrics.instruments import Instruments
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError


class MeteringObserver:
    """Counts what it sees."""

    def __init__(self, instruments: Instruments, health: Health) -> None:
        self._to = instruments
        self._health = health
        self._ends: dict[tuple[str, int], int] = {}

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """The run has begun."""
        del tables
        self._health.began()

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """Do nothing: the topic goes on."""

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """Note how far behind the partitions are."""
        self._health.progressed()
        for each in partitions:
            self._ends[topic, each.partition] = each.last_stable
            self._place(topic, each.partition, each.next_offset)

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Count the wave."""
        del wave, ranges
        self._to.waves.inc()
        self._health.progressed()

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Count the task and its steps."""
        del planned
        self._health.progressed()
        outcome = "done" if result.error is None else "failed"
        self._to.tasks.labels(topic, "interrupted" if isinstance(result.error, TaskInterrupted) else outcome).inc()
        self._to.source_bytes.labels(topic).inc(result.metrics.source_bytes)
        for step, seconds in result.metrics.steps.items():
            self._to.step_seconds.labels(topic, step).inc(seconds)

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Count the driver's steps."""
        self._health.progressed()
        self._to.step_seconds.labels(topic, step).inc(seconds)
        if step == "commit":
            self._to.commits.labels(topic).inc()
            self._to.commit_seconds.labels(topic).observe(seconds)

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Count what is in the table now."""
        files = [one.file for one in ranges if one.file is not None]
        self._to.records.labels(topic).inc(sum(file.rows for file in files))
        self._to.files.labels(topic).inc(len(files))
        self._to.file_bytes.labels(topic).inc(sum(file.size_bytes for file in files))
        self._to.raw_values.labels(topic).inc(sum(file.raw_values for file in files))
        self._to.lost_offsets.labels(topic).inc(sum(one.end_offset - one.start_offset for one in ranges if one.lost))
        self._to.last_committed.labels(topic).set(time.time())
        for one in sorted(ranges, key=lambda one: one.end_offset):
            self._place(topic, one.partition, one.end_offset)

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Count the failure."""
        del partition
        self._to.failures.labels(topic, type(error).__name__).inc()

    def finished(self, report: JobReport) -> None:
        """Count the run, and say what it could not do."""
        self._to.runs.labels("stopped" if report.stopped else "succeeded" if report.succeeded else "failed").inc()
        self._health.ended(_reasons(report))

    def _place(self, topic: str, partition: int, offset: int) -> None:
        self._to.next_offset.labels(topic, partition).set(offset)
        self._to.lag_offsets.labels(topic, partition).set(max(0, self._ends.get((topic, partition), offset) - offset))


def _reasons(report: JobReport) -> list[str]:
    whole = [f"{type(report.error).__name__}: {report.error}"] if report.error else []
    return whole + [
        f"{topic.topic if partition is None else f'{topic.topic}-{partition}'}: {type(error).__name__}: {error}"
        for topic in report.topics
        for partition, error in topic.failures
    ]
