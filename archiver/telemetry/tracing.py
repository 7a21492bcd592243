"""Sends a job's progress as OpenTelemetry spans over OTLP/HTTP.

Steps overlap: a step's span begins with the task and lasts as long as the step was busy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import assert_never

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

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
    SchemaRegistryDown,
    StepFinished,
    TableNoted,
    TaskFinished,
    TopicsOpened,
    WavePlanned,
)
from schema_mapping.errors import ContextError

SERVICE = "kafka-iceberg-archiver"
_NANOSECONDS = 1_000_000_000


@contextmanager
def tracer_to(endpoint: str, headers: Mapping[str, str], exporter: SpanExporter | None = None) -> Iterator[Tracer]:
    """`endpoint` is the whole URL (`…/v1/traces`). Spans that can't be sent are dropped and logged."""
    resource = Resource.create({"service.name": SERVICE, "service.version": version(SERVICE)})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    to = exporter or OTLPSpanExporter(endpoint=endpoint, headers=dict(headers))
    provider.add_span_processor(BatchSpanProcessor(to))
    try:
        yield provider.get_tracer("archiver")
    finally:
        provider.shutdown()


class Spans:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._wave: Span | None = None

    def __call__(self, event: JobEvent) -> None:
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
            case (
                JobWaiting()
                | TopicsOpened()
                | SchemaRegistryDown()
                | SchemaChanged()
                | SchemaChangeWaiting()
                | SchemaDoubted()
                | TableNoted()
                | PartitionsSeen()
                | RangesCommitted()
            ):
                pass  # no span begins or ends with these
            case _ as never:
                assert_never(never)

    def _begin_wave(self, event: WavePlanned) -> None:
        self._end_wave()
        tasks = sum(len(range_) for range_ in event.ranges.values())
        self._wave = self._tracer.start_span(
            "wave",
            attributes={"archiver.wave": event.wave, "archiver.tasks": tasks, "archiver.topics": len(event.ranges)},
        )

    def _task(self, event: TaskFinished) -> None:
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
        if self._wave is not None:
            attributes: dict[str, str | int] = {"archiver.topic": event.topic}
            attributes |= {} if event.partition is None else {"archiver.partition": event.partition}
            self._wave.record_exception(event.error, attributes=attributes)
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
