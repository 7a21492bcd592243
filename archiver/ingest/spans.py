"""A job's progress as OpenTelemetry spans: a wave, its tasks and their steps, its stages and commits.

A task's steps take turns and overlap, batch by batch. Each is one span from the task's start, as long as it was busy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from archiver.ingest.observer import SilentObserver, Step
from archiver.ingest.plan import PlannedRange
from archiver.ingest.report import JobReport
from archiver.ingest.task_values import TaskResult
from schema_mapping.errors import ContextError

_NANOSECONDS = 1_000_000_000


class TracingObserver(SilentObserver):
    """Makes spans as things end."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._wave: Span | None = None

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Begin the wave's span, and end that of the one before."""
        self._end_wave()
        tasks = sum(len(those) for those in ranges.values())
        self._wave = self._tracer.start_span(
            "wave", attributes={"archiver.wave": wave, "archiver.tasks": tasks, "archiver.topics": len(ranges)}
        )

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Make the task's span and those of its steps."""
        end = result.finished_ns or time.time_ns()
        start = result.started_ns or end
        metrics = result.metrics
        span = self._span(
            "task",
            start,
            {
                "archiver.topic": topic,
                "archiver.partition": planned.partition,
                "archiver.start_offset": planned.start_offset,
                "archiver.end_offset": planned.end_offset,
                "archiver.covered_to": result.ranges[-1].end_offset if result.ranges else planned.start_offset,
                "archiver.records": metrics.records,
                "archiver.source_bytes": metrics.source_bytes,
                "archiver.files": metrics.files,
                "archiver.file_bytes": metrics.file_bytes,
            },
        )
        for step, seconds in metrics.steps.items():
            busy = self._tracer.start_span(step, context=set_span_in_context(span), start_time=start)
            busy.end(start + int(seconds * _NANOSECONDS))
        _judge(span, result.error)
        span.end(end)

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Make the span of a step that the driver took."""
        end = time.time_ns()
        self._span(step, end - int(seconds * _NANOSECONDS), {"archiver.topic": topic}).end(end)

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Note it on the wave."""
        if self._wave is not None:
            place: dict[str, str | int] = {"archiver.topic": topic}
            place |= {} if partition is None else {"archiver.partition": partition}
            self._wave.record_exception(error, attributes=place)
            _judge(self._wave, error)

    def finished(self, report: JobReport) -> None:
        """End the last wave."""
        del report
        self._end_wave()

    def _span(self, name: str, start: int, attributes: Mapping[str, str | int]) -> Span:
        parent = set_span_in_context(self._wave) if self._wave is not None else None
        return self._tracer.start_span(name, context=parent, attributes=attributes, start_time=start)

    def _end_wave(self) -> None:
        if self._wave is not None:
            self._wave.end()
            self._wave = None


def _judge(span: Span, error: ContextError | None) -> None:
    if error is not None:
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
