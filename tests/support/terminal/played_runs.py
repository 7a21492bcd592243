"""Plays an archive job to a terminal: `python -m tests.support.terminal.played_runs [--every]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from archiver.errors import ParseHalted, SchemaRegistryUnavailable
from archiver.ingest.events import (
    Failed,
    JobEvent,
    PartitionsSeen,
    RangesCommitted,
    RunFinished,
    SchemaRegistryDown,
    TaskFinished,
    TopicsOpened,
    WavePlanned,
)
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task.values import TaskMetrics, TaskResult
from archiver.terminal.archive_screen import ArchiveScreen
from archiver.terminal.console import Terminal
from archiver.topics.seen_partition import SeenPartition
from catalog.model import PartitionOffset
from catalog.recognition import Fit, Recognition
from tests.support.catalog.memory import span

TOPICS = {"metrics.cpu.total": "kafka.metrics_cpu_total", "orders": "kafka.orders", "payments": "kafka.payments"}
HALT = ParseHalted(
    "[truncated] at the first value", topic="orders", partition=2, offset=123_456_789, code="[truncated]"
)
SOME = 987_654
MANY = 123_456_789


def busy_run() -> Iterator[JobEvent]:
    yield TopicsOpened(tables=TOPICS)
    yield SchemaRegistryDown(topic="orders", error=SchemaRegistryUnavailable("nobody answers", url="http://[::1]:8081"))
    offset = PartitionOffset(next_offset=0)
    seen = SeenPartition(partition=0, log_start=0, last_stable=MANY, known=offset)
    yield PartitionsSeen(topic="metrics.cpu.total", partitions=(seen,))
    planned = PlannedRange(partition=0, start_offset=0, end_offset=MANY, owns_head=True)
    yield WavePlanned(wave=1, ranges={"metrics.cpu.total": (planned,)})
    done = span(0, 0, SOME)
    time.sleep(0.4)
    yield TaskFinished(topic="metrics.cpu.total", planned=planned, result=TaskResult(ranges=(done,)))
    time.sleep(0.4)
    yield RangesCommitted(topic="metrics.cpu.total", ranges=(done,))
    yield Failed(topic="orders", partition=2, error=HALT)
    yield RunFinished(report=busy_report())


def busy_report() -> JobReport:
    archived = PartitionReport(
        partition=0,
        from_offset=0,
        to_offset=MANY,
        records=MANY,
        files=4_321,
        file_bytes=31 * 10**9,
        recognition=Recognition(value=Fit(values=MANY, size_bytes=70 * 10**9, raw=7)),
    )
    topics = (
        TopicReport(
            topic="metrics.cpu.total",
            table=TOPICS["metrics.cpu.total"],
            partitions=(archived,),
            metrics=TaskMetrics(source_bytes=84 * 10**9),
        ),
        TopicReport(topic="orders", table=TOPICS["orders"], partitions=(PartitionReport(partition=2, error=HALT),)),
        TopicReport(topic="payments", table=TOPICS["payments"]),
    )
    return JobReport(topics=topics, waves=1, seconds=1_234.5)


def idle_run(waiting: int) -> Iterator[JobEvent]:
    yield TopicsOpened(tables=TOPICS)
    offset = PartitionOffset(next_offset=0)
    seen = SeenPartition(partition=0, log_start=0, last_stable=waiting, known=offset)
    yield PartitionsSeen(topic="orders", partitions=(seen,))
    topics = tuple(TopicReport(topic=topic, table=table) for topic, table in TOPICS.items())
    yield RunFinished(report=JobReport(topics=topics, waves=0, seconds=0.25))


def main() -> None:
    repeats = "--every" in sys.argv
    with ArchiveScreen(Terminal(), repeats=repeats) as screen:
        runs = [busy_run(), idle_run(0), idle_run(1), idle_run(6_000)] if repeats else [busy_run()]
        for run in runs:
            for event in run:
                screen(event)


if __name__ == "__main__":
    main()
