"""A short run of a job, as events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from archiver.errors import BrokerUnavailable, DataLoss, SchemaRegistryUnavailable
from archiver.ingest.events import (
    Failed,
    JobEvent,
    JobObserver,
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
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task.values import TaskMetrics, TaskResult
from archiver.topics.seen_partition import SeenPartition
from catalog.model import PartitionOffset
from catalog.recognition import Doubt, Fit, Recognition
from schema_mapping.columns.evolution import Change, ChangeKind
from tests.support.catalog.memory import file, span

METRICS = TaskMetrics(
    records=90,
    batches=9,
    source_bytes=9_000,
    files=1,
    file_bytes=5_000,
    fetch_seconds=0.5,
    translate_seconds=1.0,
    write_seconds=2.0,
    upload_seconds=0.25,
)
FIT = Fit(values=90, size_bytes=900, failed=1, raw=4, unknown=60, unknown_bytes=300, blank=2)
LOSS = DataLoss("Records were deleted", topic="orders", partition=1)


def play(observer: JobObserver) -> None:
    for event in run():
        observer(event)


def run() -> Iterator[JobEvent]:
    yield JobWaiting(on="Kafka", error=BrokerUnavailable("nobody answers"))
    yield TopicsOpened(tables={"orders": "kafka.orders"})
    yield SchemaRegistryDown(topic="orders", error=SchemaRegistryUnavailable("nobody answers"))
    yield TableNoted(topic="orders", notes=("BigQuery takes at most 15 levels of nested records",))
    added = Change(kind=ChangeKind.ADDED, root="val", path=(7,), field_id=107, column="val.note", after="string")
    yield SchemaChanged(topic="orders", version=2, changes=(added,))
    yield SchemaChangeWaiting(topic="orders", changes=(replace(added, kind=ChangeKind.REMOVED),))
    offset = PartitionOffset(next_offset=10)
    seen = (
        SeenPartition(partition=0, log_start=0, last_stable=200, known=offset),
        SeenPartition(partition=1, log_start=50, last_stable=60, known=offset),
    )
    yield PartitionsSeen(topic="orders", partitions=seen)
    yield Failed(topic="orders", partition=1, error=LOSS)
    head = PlannedRange(partition=0, start_offset=10, end_offset=100, owns_head=True)
    tail = replace(head, start_offset=100, end_offset=200, owns_head=False)
    yield WavePlanned(wave=1, ranges={"orders": (head, tail)})
    done = replace(
        span(0, 10, 100),
        files=(replace(file(rows=90), raw_values=4, size_bytes=5_000, recognition=Recognition(value=FIT)),),
    )
    now = time.time_ns()
    result = TaskResult(ranges=(done,), metrics=METRICS, started_ns=now - 3_000_000_000, finished_ns=now)
    yield TaskFinished(topic="orders", planned=head, result=result)
    yield StepFinished(topic="orders", step="stage", seconds=0.01)
    failed = TaskResult(ranges=(), error=BrokerUnavailable("no broker answers"))
    yield TaskFinished(topic="orders", planned=tail, result=failed)
    lost = replace(span(1, 10, 50, with_file=False), lost=True)
    yield RangesCommitted(topic="orders", ranges=(done, lost))
    yield StepFinished(topic="orders", step="commit", seconds=0.4)
    yield SchemaDoubted(topic="orders", part="value", fit=FIT, doubt=Doubt.UNKNOWN)
    partitions = (PartitionReport(partition=0).committed([done]), PartitionReport(partition=1, error=LOSS))
    topic = TopicReport(topic="orders", table="kafka.orders", partitions=partitions)
    yield RunFinished(report=JobReport(topics=(topic,), waves=1, seconds=4.0))
