"""How an archive job looks: bars and a table on a terminal, plain lines elsewhere, or one JSON object an event."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from archiver.ingest.plan import PlannedRange
from archiver.ingest.report import JobReport, TopicReport
from archiver.ingest.task_values import TaskResult
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

MEGABYTE = 1_000_000


class PeopleObserver:
    """Tells a person: on a terminal with bars, elsewhere with a line for each wave and failure. Use as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("offsets"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Say what will be archived."""
        for topic, table in sorted(tables.items()):
            self._console.print(f"{topic} [dim]into[/] {table}", highlight=False)

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Begin a bar over all offsets of the wave."""
        planned = [each for topic in ranges.values() for each in topic]
        offsets = sum(each.end_offset - each.start_offset for each in planned)
        partitions = len({(topic, each.partition) for topic, those in ranges.items() for each in those})
        title = f"Wave {wave}: {len(planned)} tasks for {partitions} partitions of {len(ranges)} topics"
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(title, total=offsets)
        if not self._console.is_terminal:
            self._console.print(f"{title}, {offsets:,} offsets", highlight=False)

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Move the bar by what the task covered."""
        del topic, planned
        if self._task is not None:
            self._bars.advance(self._task, sum(each.end_offset - each.start_offset for each in result.ranges))

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Say what a commit brought."""
        rows = sum(each.file.rows for each in ranges if each.file)
        self._console.print(f"{topic}: committed {rows:,} records", highlight=False, style="dim")
        for each in ranges:
            if each.lost:
                self._console.print(f"[bold yellow]{topic}-{each.partition}[/]: recorded as lost {each.span}")

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Say what can't go on, and why."""
        where = topic if partition is None else f"{topic}-{partition}"
        self._console.print(f"[bold red]{where}[/]: {type(error).__name__}: {error}", highlight=False)

    def finished(self, report: JobReport) -> None:
        """Show the run's table."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        if self._console.is_terminal:
            self._console.print(report_table(report))
            return
        for topic in report.topics:
            self._console.print(report_line(topic), highlight=False, soft_wrap=True)
        self._console.print(report_title(report), highlight=False)


class JsonObserver:
    """Tells a machine: one JSON object a line, each with `time` and `event`."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Write `topics_opened`."""
        self._write("topics_opened", tables=dict(tables))

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Write `wave_planned`, with the offsets of each partition."""
        planned = {topic: [_range(each) for each in those] for topic, those in ranges.items()}
        self._write("wave_planned", wave=wave, ranges=planned)

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Write `task_finished`, with the task's own measures."""
        covered = [_range(each) for each in result.ranges]
        self._write("task_finished", topic=topic, planned=_range(planned), covered=covered, **asdict(result.metrics))

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Write `committed`, with the offsets that are in the table now."""
        self._write("committed", topic=topic, ranges=[_range(each) | {"lost": each.lost} for each in ranges])

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Write `failed`."""
        self._write("failed", topic=topic, partition=partition, error=_error(error))

    def finished(self, report: JobReport) -> None:
        """Write `finished`, with the whole report."""
        self._write(
            "finished",
            succeeded=report.succeeded,
            stopped=report.stopped,
            seconds=round(report.seconds, 3),
            waves=report.waves,
            topics=[_topic(each) for each in report.topics],
        )

    def _write(self, event: str, **values: Any) -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
        self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._out.flush()


def report_title(report: JobReport) -> str:
    """A run in one line."""
    state = "stopped early" if report.stopped else "done" if report.succeeded else "with failures"
    return f"{report.records:,} records in {report.seconds:.1f} s, {state}"


def report_line(topic: TopicReport) -> str:
    """One topic in one line."""
    return (
        f"{topic.topic}: {topic.records:,} records, {topic.metrics.source_bytes / MEGABYTE:,.1f} MB in, "
        f"{topic.file_bytes / MEGABYTE:,.1f} MB stored in {topic.files:,} files, {topic.raw_share:.2%} kept raw, "
        f"{len(topic.failures)} failed"
    )


def report_table(report: JobReport) -> Table:
    """What a run archived, a row for each topic."""
    table = Table(title=report_title(report), title_justify="left")
    table.add_column("topic")
    table.add_column("table")
    for heading in ("partitions", "records", "files", "MB in", "MB stored", "kept raw", "failed"):
        table.add_column(heading, justify="right")
    for topic in report.topics:
        table.add_row(
            topic.topic,
            topic.table,
            str(len(topic.partitions)),
            f"{topic.records:,}",
            f"{topic.files:,}",
            f"{topic.metrics.source_bytes / MEGABYTE:,.1f}",
            f"{topic.file_bytes / MEGABYTE:,.1f}",
            f"{topic.raw_share:.2%}",
            str(len(topic.failures)) if topic.failures else "-",
        )
    return table


def _range(each: PlannedRange | TranslatedRange) -> dict[str, int]:
    return {"partition": each.partition, "start_offset": each.start_offset, "end_offset": each.end_offset}


def _error(error: ContextError) -> dict[str, Any]:
    context = {name: str(value) for name, value in error.context.items()}
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "context": context,
        "retryable": error.retryable,
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
        "commits": topic.commits,
        "partitions": [
            {
                "partition": each.partition,
                "from_offset": each.from_offset,
                "to_offset": each.to_offset,
                "records": each.records,
                "lost_offsets": each.lost_offsets,
                "error": _error(each.error) if each.error else None,
            }
            for each in topic.partitions
        ],
        "error": _error(topic.error) if topic.error else None,
    }
