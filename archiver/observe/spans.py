"""A job's progress as OpenTelemetry spans: a wave, its tasks and their steps, its stages and commits.

A task's steps take turns and overlap, batch by batch. Each is one span from the task's start, as long as it was busy.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import assert_never

from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from archiver.ingest.events import (
    Failed,
    JobEvent,
    PartitionsSeen,
    RangesCommitted,
    RunFinished,
    SchemaRegistryDown,
    StepFinished,
    TaskFinished,
    TopicsOpened,
    WavePlanned,
)
from schema_mapping.errors import ContextError

_NANOSECONDS = 1_000_000_000


class Spans:
    """An observer that makes a span of each wave, task and step once it ends."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._wave: Span | None = None

    def __call__(self, event: JobEvent) -> None:
        """Make the spans that end with an event."""
        match event:
            case WavePlanned():
                self._begin_wave(event)
            case TaskFinished():
                self._task(event)
            case StepFinished():
                end = time.time_ns()
                start = end - int(event.seconds * _NANOSECONDS)
                self._span(event.step, start, {"archiver.topic": event.topic}).end(end)
            case Failed():
                self._note_failure(event)
            case RunFinished():
                self._end_wave()
            case TopicsOpened() | SchemaRegistryDown() | PartitionsSeen() | RangesCommitted():
                pass  # no span begins or ends with these
            case _ as never:
                assert_never(never)

    def _begin_wave(self, event: WavePlanned) -> None:
        """Begin the wave's span, and end that of the wave before."""
        self._end_wave()
        tasks = sum(len(those) for those in event.ranges.values())
        self._wave = self._tracer.start_span(
            "wave",
            attributes={"archiver.wave": event.wave, "archiver.tasks": tasks, "archiver.topics": len(event.ranges)},
        )

    def _task(self, event: TaskFinished) -> None:
        """Make the task's span and those of its steps."""
        planned, result = event.planned, event.result
        end = result.finished_ns or time.time_ns()
        start = result.started_ns or end
        metrics = result.metrics
        span = self._span(
            "task",
            start,
            {
                "archiver.topic": event.topic,
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

    def _note_failure(self, event: Failed) -> None:
        """Note the failure on the wave's span."""
        if self._wave is not None:
            place: dict[str, str | int] = {"archiver.topic": event.topic}
            place |= {} if event.partition is None else {"archiver.partition": event.partition}
            self._wave.record_exception(event.error, attributes=place)
            _judge(self._wave, event.error)

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
