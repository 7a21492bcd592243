"""Counts a job's events, also as progress for `health`."""

from __future__ import annotations

import time
from functools import partial
from typing import assert_never

from archiver.chores.runner import ChoreEnded
from archiver.errors import ConsentMissing, TaskInterrupted
from archiver.ingest.events import (
    Failed,
    JobEvent,
    JobWaiting,
    PartitionsSeen,
    RangesCommitted,
    RunFinished,
    SchemaChanged,
    SchemaChangeWaiting,
    SchemaDoubted,
    SchemaEvent,
    SchemaRegistryDown,
    StepFinished,
    TableNoted,
    TaskFinished,
    TopicsOpened,
    WavePlanned,
)
from archiver.ingest.report import JobReport
from archiver.telemetry.health import Health
from archiver.telemetry.instruments import Instruments
from archiver.telemetry.lag import Lag
from archiver.upkeep.retire.report import ExpireEvent, ExpireFinished
from catalog.recognition import Fit, Recognition


class Metering:
    """If it fails, health soon reports a job without progress."""

    def __init__(self, instruments: Instruments, health: Health) -> None:
        self._to = instruments
        self._health = health
        self._ends: dict[tuple[str, int], int] = {}
        self._lag = Lag()

    def __call__(self, event: JobEvent) -> None:  # noqa: C901 - one case for each kind of event
        self._health.progressed()
        match event:
            case JobWaiting():
                self._health.ended((f"Waiting for {event.on}: {event.error}",))
            case TopicsOpened():
                self._health.began()
            case SchemaRegistryDown() | SchemaChanged() | SchemaChangeWaiting() | SchemaDoubted() | TableNoted():
                self._schema(event)
            case PartitionsSeen():
                self._seen(event)
            case WavePlanned():
                self._to.waves.inc()
            case TaskFinished():
                self._task(event)
            case StepFinished():
                self._step(event)
            case RangesCommitted():
                self._committed(event)
            case Failed():
                self._to.failures.labels(event.topic, type(event.error).__name__).inc()
            case RunFinished(report=report):
                outcome = "stopped" if report.stopped else "succeeded" if report.succeeded else "failed"
                self._to.runs.labels(outcome).inc()
                self._health.ended(_reasons(report))
            case _ as never:
                assert_never(never)

    def _schema(self, event: SchemaEvent) -> None:
        match event:
            case SchemaRegistryDown() | TableNoted():
                pass  # the topic is archived all the same
            case SchemaChanged():
                self._to.schema_changes.labels(event.topic).inc()
            case SchemaChangeWaiting():
                self._to.schema_change_waits.labels(event.topic).set(1 if event.changes else 0)
            case SchemaDoubted():
                self._to.schema_doubts.labels(event.topic, event.part, event.doubt.name.lower()).inc()
            case _ as never:
                assert_never(never)

    def _seen(self, event: PartitionsSeen) -> None:
        for partition in event.partitions:
            self._ends[event.topic, partition.partition] = partition.last_stable
            self._lag.saw((event.topic, partition.partition), archived=partition.next_offset, end=partition.last_stable)
            self._place(event.topic, partition.partition, partition.next_offset)

    def _task(self, event: TaskFinished) -> None:
        topic, result = event.topic, event.result
        outcome = "done" if result.error is None else "failed"
        self._to.tasks.labels(topic, "interrupted" if isinstance(result.error, TaskInterrupted) else outcome).inc()
        self._to.source_bytes.labels(topic).inc(result.metrics.source_bytes)
        for step, seconds in result.metrics.steps.items():
            self._to.step_seconds.labels(topic, step).inc(seconds)

    def _step(self, event: StepFinished) -> None:
        self._to.step_seconds.labels(event.topic, event.step).inc(event.seconds)
        if event.step == "commit":
            self._to.commits.labels(event.topic).inc()
            self._to.commit_seconds.labels(event.topic).observe(event.seconds)

    def _committed(self, event: RangesCommitted) -> None:
        topic, ranges = event.topic, event.ranges
        files = [file for range_ in ranges for file in range_.files]
        self._to.records.labels(topic).inc(sum(file.rows for file in files))
        self._to.files.labels(topic).inc(len(files))
        self._to.file_bytes.labels(topic).inc(sum(file.size_bytes for file in files))
        recognition = sum((file.recognition or Recognition() for file in files), Recognition())
        for part, fit in recognition.parts.items():
            self._fit(topic, part, fit)
        self._to.lost_offsets.labels(topic).inc(
            sum(range_.end_offset - range_.start_offset for range_ in ranges if range_.lost)
        )
        self._to.last_committed.labels(topic).set(time.time())
        for range_ in sorted(ranges, key=lambda committed: committed.end_offset):
            newest = max((file.max_timestamp for file in range_.files if file.max_timestamp is not None), default=None)
            self._lag.committed((topic, range_.partition), until=range_.end_offset, newest_ms=newest)
            self._place(topic, range_.partition, range_.end_offset)

    def _fit(self, topic: str, part: str, fit: Fit) -> None:
        for counter, count in (
            (self._to.values, fit.values),
            (self._to.value_bytes, fit.size_bytes),
            (self._to.failed_values, fit.failed),
            (self._to.unapproved_values, fit.unapproved),
            (self._to.raw_values, fit.raw),
            (self._to.unrecognized_values, fit.unknown),
            (self._to.unrecognized_bytes, fit.unknown_bytes),
            (self._to.blank_values, fit.blank),
        ):
            counter.labels(topic, part).inc(count)

    def _place(self, topic: str, partition: int, offset: int) -> None:
        self._to.next_offset.labels(topic, partition).set(offset)
        self._to.lag_offsets.labels(topic, partition).set(max(0, self._ends.get((topic, partition), offset) - offset))
        self._to.lag_seconds.labels(topic, partition).set_function(partial(self._lag.seconds, (topic, partition)))


class ExpireMetering:
    def __init__(self, instruments: Instruments) -> None:
        self._to = instruments

    def __call__(self, event: ExpireEvent) -> None:
        """Errors that prevent a check leave the number unchanged."""
        for topic in event.report.topics if isinstance(event, ExpireFinished) else ():
            if topic.error is None or isinstance(topic.error, ConsentMissing):
                self._to.expire_needs_consent.labels(topic.topic).set(int(topic.error is not None))


class ChoreMetering:
    def __init__(self, instruments: Instruments) -> None:
        self._to = instruments

    def __call__(self, event: ChoreEnded) -> None:
        self._to.chore_seconds.labels(event.topic, event.chore).inc(event.seconds)
        for error in event.failures:
            self._to.chore_failures.labels(event.topic, event.chore, type(error).__name__).inc()


def _reasons(report: JobReport) -> list[str]:
    whole = [f"{type(report.error).__name__}: {report.error}"] if report.error else []
    return whole + [
        f"{topic.topic if partition is None else f'{topic.topic}-{partition}'}: {type(error).__name__}: {error}"
        for topic in report.topics
        for partition, error in topic.failures
    ]
