"""The metrics and health of `archiver serve flight` (docs/flight.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from archiver.intake.events import GroupAppended, IntakeEvent, TurnFailed, TurnWritten
from archiver.telemetry.health import HealthReport
from archiver.telemetry.metrics import METRICS, counter, histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNumbers:
    """`ended`: why the log takes in nothing more. `problem`: why rows wait for the table."""

    topic: str
    next_offsets: Mapping[int, int]
    waiting_bytes: int
    disk_bytes: int
    segments: int
    ended: str | None = None
    problem: str | None = None


class IntakeInstruments:
    """`topics` are read at scrape time, from another thread."""

    def __init__(self, topics: Callable[[], Iterable[TopicNumbers]], memory: Callable[[], int]) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(namespace="archiver", registry=self.registry)
        self._batches = counter("flight_batches", self.registry)
        self._refused = counter("flight_refused_batches", self.registry)
        self._rows = counter("flight_rows", self.registry)
        self._log_bytes = counter("flight_batch_bytes", self.registry)
        self._append_seconds = histogram("flight_append_seconds", self.registry)
        self._files = counter("flight_files", self.registry)
        self._file_bytes = counter("flight_file_bytes", self.registry)
        self._table_rows = counter("flight_table_rows", self.registry)
        self._upload_seconds = histogram("flight_upload_seconds", self.registry)
        self._turn_seconds = histogram("flight_turn_seconds", self.registry)
        self._failures = counter("flight_turn_failures", self.registry)
        self.registry.register(_Numbers(topics, memory))

    def __call__(self, event: IntakeEvent) -> None:
        match event:
            case GroupAppended():
                self._batches.labels(event.topic).inc(event.batches)
                self._refused.labels(event.topic).inc(event.refused)
                self._rows.labels(event.topic).inc(event.rows)
                self._log_bytes.labels(event.topic).inc(event.size_bytes)
                self._append_seconds.labels(event.topic).observe(event.seconds)
            case TurnWritten():
                self._files.labels(event.topic).inc(event.files)
                self._file_bytes.labels(event.topic).inc(event.file_bytes)
                self._table_rows.labels(event.topic).inc(event.rows)
                self._upload_seconds.labels(event.topic).observe(event.write_seconds)
                self._turn_seconds.labels(event.topic).observe(event.seconds)
            case TurnFailed():
                self._failures.labels(event.topic).inc()
            case _:
                assert_never(event)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Numbers(Collector):
    def __init__(self, topics: Callable[[], Iterable[TopicNumbers]], memory: Callable[[], int]) -> None:
        self._topics = topics
        self._memory = memory

    def collect(self) -> Iterator[Metric]:
        topics = list(self._topics())
        yield _gauge("waiting_bytes", {(topic.topic,): topic.waiting_bytes for topic in topics})
        yield _gauge("log_bytes", {(topic.topic,): topic.disk_bytes for topic in topics})
        yield _gauge("log_ended", {(topic.topic,): int(topic.ended is not None) for topic in topics})
        offsets: dict[tuple[str, ...], int] = {
            (topic.topic, str(partition)): offset
            for topic in topics
            for partition, offset in topic.next_offsets.items()
        }
        yield _gauge("next_offset", offsets)
        yield _gauge("unacknowledged_bytes", {(): self._memory()})
        row = METRICS["flight_segments"]
        segments = CounterMetricFamily(row.family, row.text, labels=row.labels)
        for topic in topics:
            segments.add_metric([topic.topic], topic.segments)
        yield segments


class IntakeHealth:
    """Not live if a topic's log has ended, except in an orderly stop: only a restart helps."""

    def __init__(self, topics: Callable[[], Iterable[TopicNumbers]]) -> None:
        self._topics = topics
        self._is_ready = False
        self._stops = False

    def ready(self) -> None:
        self._is_ready = True

    def stop(self) -> None:
        """Their rows are still written."""
        self._stops = True

    def report(self) -> HealthReport:
        if not self._is_ready:
            return HealthReport(live=True, ready=False, reasons=("No clients are taken yet",))
        topics = list(self._topics())
        if self._stops:
            problems = [f"{topic.topic}: {topic.problem}" for topic in topics if topic.problem is not None]
            return HealthReport(live=True, ready=False, reasons=("The server stops", *problems))
        ended = [f"{topic.topic}: {topic.ended}" for topic in topics if topic.ended is not None]
        problems = [f"{topic.topic}: {topic.problem}" for topic in topics if topic.problem is not None]
        return HealthReport(live=not ended, ready=not ended, reasons=(*ended, *problems))


def _gauge(name: str, values: Mapping[tuple[str, ...], int]) -> GaugeMetricFamily:
    row = METRICS[f"flight_{name}"]
    family = GaugeMetricFamily(row.family, row.text, labels=row.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
