"""Shows the events of an archive job as JSON lines: one line an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, assert_never

from archiver.ingest.events import (
    Failed,
    JobEvent,
    PartitionsSeen,
    RangesCommitted,
    RunFinished,
    SchemaChanged,
    SchemaChangeWaiting,
    SchemaDoubted,
    SchemaEvent,
    SchemaRegistryDown,
    StepFinished,
    TaskFinished,
    TopicsOpened,
    Waiting,
    WavePlanned,
)
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.report import JobReport, TopicReport
from archiver.terminal.json_lines import Line, error_json
from catalog.model import TranslatedRange


def archive_lines(event: JobEvent) -> Iterator[Line]:  # noqa: C901 - one case for each kind of event
    """Make the line of an event: its name, and its values by name."""
    match event:
        case Waiting():
            yield "waiting", {"on": event.on, "error": error_json(event.error)}
        case TopicsOpened():
            yield "topics_opened", {"tables": dict(event.tables)}
        case SchemaRegistryDown() | SchemaChanged() | SchemaChangeWaiting() | SchemaDoubted():
            yield _schema(event)
        case PartitionsSeen():
            yield "looked", _seen(event)
        case WavePlanned():
            planned = {topic: [_range(each) for each in those] for topic, those in event.ranges.items()}
            yield "wave_planned", {"wave": event.wave, "ranges": planned}
        case TaskFinished():
            yield "task_finished", _task(event)
        case StepFinished():
            seconds = round(event.seconds, 6)
            yield "step_finished", {"topic": event.topic, "step": event.step, "seconds": seconds}
        case RangesCommitted():
            ranges = [_range(each) | {"lost": each.lost} for each in event.ranges]
            yield "committed", {"topic": event.topic, "ranges": ranges}
        case Failed():
            error = error_json(event.error)
            yield "failed", {"topic": event.topic, "partition": event.partition, "error": error}
        case RunFinished():
            yield "finished", _run(event.report)
        case _ as never:
            assert_never(never)


def _schema(event: SchemaEvent) -> Line:
    match event:
        case SchemaRegistryDown():
            return "schema_registry_down", {"topic": event.topic, "error": error_json(event.error)}
        case SchemaChanged():
            changes = [change.to_json() for change in event.changes]
            return "schema_changed", {"topic": event.topic, "version": event.version, "changes": changes}
        case SchemaChangeWaiting():
            changes = [change.to_json() for change in event.changes]
            return "schema_change_waiting", {"topic": event.topic, "changes": changes}
        case SchemaDoubted():
            about = {"part": event.part, "doubt": event.doubt.name.lower(), "why": event.doubt.value}
            return "schema_doubted", {"topic": event.topic, **about, "counts": asdict(event.fit)}
        case _ as never:
            assert_never(never)


def _seen(event: PartitionsSeen) -> dict[str, Any]:
    """The partitions that have something to archive, and how many partitions there are in all."""
    behind = [
        {"partition": each.partition, "next_offset": each.next_offset, "last_stable": each.last_stable}
        for each in event.partitions
        if each.next_offset < each.last_stable
    ]
    return {"topic": event.topic, "partitions": len(event.partitions), "behind": behind}


def _task(event: TaskFinished) -> dict[str, Any]:
    """The range that the task should cover and what it covered, its metrics, and the seconds of its steps."""
    result = event.result
    measures = {name: value for name, value in asdict(result.metrics).items() if not name.endswith("_seconds")}
    return {
        "topic": event.topic,
        "planned": _range(event.planned),
        "covered": [_range(each) for each in result.ranges],
        **measures,
        "steps": {step: round(seconds, 6) for step, seconds in result.metrics.steps.items()},
        "seconds": round((result.finished_ns - result.started_ns) / 1e9, 6),
        "error": error_json(result.error) if result.error else None,
    }


def _run(report: JobReport) -> dict[str, Any]:
    return {
        "succeeded": report.succeeded,
        "stopped": report.stopped,
        "seconds": round(report.seconds, 3),
        "waves": report.waves,
        "error": error_json(report.error) if report.error else None,
        "topics": [_topic(each) for each in report.topics],
    }


def _topic(topic: TopicReport) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "table": topic.table,
        "records": topic.records,
        "files": topic.files,
        "file_bytes": topic.file_bytes,
        "source_bytes": topic.metrics.source_bytes,
        "raw_share": topic.raw_share,
        "recognition": {part: asdict(fit) for part, fit in topic.recognition.parts.items()},
        "commits": topic.commits,
        "partitions": [
            {
                "partition": each.partition,
                "from_offset": each.from_offset,
                "to_offset": each.to_offset,
                "records": each.records,
                "lost_offsets": each.lost_offsets,
                "error": error_json(each.error) if each.error else None,
            }
            for each in topic.partitions
        ],
        "error": error_json(topic.error) if topic.error else None,
    }


def _range(each: PlannedRange | TranslatedRange) -> dict[str, int]:
    return {"partition": each.partition, "start_offset": each.start_offset, "end_offset": each.end_offset}
