"""Shows people an archive job: bars and a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import assert_never

from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
from archiver.ingest.report import JobReport, TopicReport
from archiver.observe.bars import Bars

MEGABYTE = 1_000_000


class ArchiveScreen(Bars):
    """An observer that shows people the job. Use as a context manager.

    A terminal gets bars. Other outputs get a line for each wave and each failure.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, unit="offsets")
        self._wave: str | None = None
        self._ahead: dict[tuple[str, int], int] = {}

    def __call__(self, event: JobEvent) -> None:
        """Show an event."""
        match event:
            case TopicsOpened():
                self._say_opened(event)
            case PartitionsSeen():
                self._count_ahead(event)
            case SchemaRegistryDown():
                self.console.print(
                    f"[yellow]{event.topic}[/]: going on with the schemas last known: {escape(str(event.error))}",
                    highlight=False,
                    soft_wrap=True,
                )
            case WavePlanned():
                self._begin_wave(event)
            case TaskFinished():
                self.advance(sum(each.end_offset - each.start_offset for each in event.result.ranges))
            case StepFinished():
                pass  # `RangesCommitted` shows what a commit added
            case RangesCommitted():
                self._say_committed(event)
            case Failed():
                where = event.topic if event.partition is None else f"{event.topic}-{event.partition}"
                self.say_error(where, event.error)
            case RunFinished():
                self._show_report(event.report)
            case _ as never:
                assert_never(never)

    def _say_opened(self, event: TopicsOpened) -> None:
        for topic, table in sorted(event.tables.items()):
            self.console.print(f"{topic} [dim]into[/] {table}", highlight=False)

    def _count_ahead(self, event: PartitionsSeen) -> None:
        """Add to the bar's total what the run finds to archive when it first looks at each partition."""
        for each in event.partitions:
            self._ahead.setdefault((event.topic, each.partition), each.lag)
        if self._wave is not None:
            self.show(self._wave, total=sum(self._ahead.values()))

    def _begin_wave(self, event: WavePlanned) -> None:
        """Show the wave's name on a bar over all offsets of the run."""
        ranges = event.ranges
        planned = [each for topic in ranges.values() for each in topic]
        offsets = sum(each.end_offset - each.start_offset for each in planned)
        partitions = len({(topic, each.partition) for topic, those in ranges.items() for each in those})
        self._wave = f"Wave {event.wave}: {len(planned)} tasks for {partitions} partitions of {len(ranges)} topics"
        self.show(self._wave, total=sum(self._ahead.values()))
        if not self.console.is_terminal:
            self.console.print(f"{self._wave}, {offsets:,} offsets", highlight=False)

    def _say_committed(self, event: RangesCommitted) -> None:
        rows = sum(each.rows for each in event.ranges)
        self.console.print(f"{event.topic}: committed {rows:,} records", highlight=False, style="dim")
        for each in event.ranges:
            if each.lost:
                self.console.print(f"[bold yellow]{event.topic}-{each.partition}[/]: recorded as lost {each.span}")

    def _show_report(self, report: JobReport) -> None:
        self.clear()
        self._wave = None
        self._ahead.clear()
        if report.error is not None:
            self.say_error("The run ended early", report.error)
        if self.console.is_terminal:
            self.console.print(report_table(report))
            return
        for topic in report.topics:
            self.console.print(report_line(topic), highlight=False, soft_wrap=True)
        self.console.print(report_title(report), highlight=False)


def report_title(report: JobReport) -> str:
    """Tell a run in one line."""
    state = "stopped early" if report.stopped else "done" if report.succeeded else "with failures"
    return f"{report.records:,} records in {report.seconds:.1f} s, {state}"


def report_line(topic: TopicReport) -> str:
    """Tell one topic in one line."""
    return (
        f"{topic.topic}: {topic.records:,} records, {topic.metrics.source_bytes / MEGABYTE:,.1f} MB in, "
        f"{topic.file_bytes / MEGABYTE:,.1f} MB stored in {topic.files:,} files, {topic.raw_share:.2%} kept raw, "
        f"{len(topic.failures)} failed"
    )


def report_table(report: JobReport) -> Table:
    """Show what a run archived, a row for each topic."""
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
