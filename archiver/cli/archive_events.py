"""An archive job for machines: one JSON object an event, one event a line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self, TextIO

from archiver.cli.json_lines import error_json, write_line
from archiver.ingest.observer import Step
from archiver.ingest.plan import PartitionView, PlannedRange
from archiver.ingest.report import JobReport, TopicReport
from archiver.ingest.task_values import TaskResult
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError


class JsonObserver:
    """Tells a machine: one JSON object a line, each with `time` and `event`."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Write `topics_opened`."""
        self._write("topics_opened", tables=dict(tables))

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """Write `schema_registry_down`."""
        self._write("schema_registry_down", topic=topic, error=error_json(error))

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """Write `looked`, with the partitions that have something to archive."""
        behind = [
            {"partition": each.partition, "next_offset": each.next_offset, "last_stable": each.last_stable}
            for each in partitions
            if each.next_offset < each.last_stable
        ]
        self._write("looked", topic=topic, partitions=len(partitions), behind=behind)

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Write `wave_planned`, with the offsets of each partition."""
        planned = {topic: [_range(each) for each in those] for topic, those in ranges.items()}
        self._write("wave_planned", wave=wave, ranges=planned)

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Write `task_finished`, with the task's own measures and the seconds of its steps."""
        covered = [_range(each) for each in result.ranges]
        measures = {name: value for name, value in asdict(result.metrics).items() if not name.endswith("_seconds")}
        self._write(
            "task_finished",
            topic=topic,
            planned=_range(planned),
            covered=covered,
            **measures,
            steps={step: round(seconds, 6) for step, seconds in result.metrics.steps.items()},
            seconds=round((result.finished_ns - result.started_ns) / 1e9, 6),
            error=error_json(result.error) if result.error else None,
        )

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Write `step_finished`, for what the driver does: `stage` and `commit`."""
        self._write("step_finished", topic=topic, step=step, seconds=round(seconds, 6))

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Write `committed`, with the offsets that are in the table now."""
        self._write("committed", topic=topic, ranges=[_range(each) | {"lost": each.lost} for each in ranges])

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Write `failed`."""
        self._write("failed", topic=topic, partition=partition, error=error_json(error))

    def finished(self, report: JobReport) -> None:
        """Write `finished`, with the whole report."""
        self._write(
            "finished",
            succeeded=report.succeeded,
            stopped=report.stopped,
            seconds=round(report.seconds, 3),
            waves=report.waves,
            error=error_json(report.error) if report.error else None,
            topics=[_topic(each) for each in report.topics],
        )

    def _write(self, event: str, **values: Any) -> None:
        write_line(event, out=self._out, **values)


def _range(each: PlannedRange | TranslatedRange) -> dict[str, int]:
    return {"partition": each.partition, "start_offset": each.start_offset, "end_offset": each.end_offset}


def _topic(topic: TopicReport) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "table": topic.table,
        "records": topic.records,
        "files": topic.files,
        "file_bytes": topic.file_bytes,
        "source_bytes": topic.metrics.source_bytes,
        "raw_share": topic.raw_share,
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
