"""How an archive job looks to people: bars and a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from archiver.cli.bars import Bars
from archiver.ingest.observer import Step
from archiver.ingest.plan import PartitionView, PlannedRange
from archiver.ingest.report import JobReport, TopicReport
from archiver.ingest.task_values import TaskResult
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

MEGABYTE = 1_000_000


class PeopleObserver(Bars):
    """Tells a person: on a terminal with bars, elsewhere with a line for each wave and failure. Use as a context."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, unit="offsets")
        self._wave: str | None = None
        self._ahead: dict[tuple[str, int], int] = {}

    def topics_opened(self, tables: Mapping[str, str]) -> None:
        """Say what will be archived."""
        for topic, table in sorted(tables.items()):
            self.console.print(f"{topic} [dim]into[/] {table}", highlight=False)

    def looked(self, topic: str, partitions: Sequence[PartitionView]) -> None:
        """Have the bar count what the run finds to archive."""
        for each in partitions:
            self._ahead.setdefault((topic, each.partition), each.lag)
        if self._wave is not None:
            self.show(self._wave, total=sum(self._ahead.values()))

    def schema_registry_down(self, topic: str, error: ContextError) -> None:
        """Say that the topic goes on with what is remembered."""
        self.console.print(
            f"[yellow]{topic}[/]: going on with the schemas last known: {escape(str(error))}",
            highlight=False,
            soft_wrap=True,
        )

    def wave_planned(self, wave: int, ranges: Mapping[str, Sequence[PlannedRange]]) -> None:
        """Name the wave on a bar over all offsets of the run."""
        planned = [each for topic in ranges.values() for each in topic]
        offsets = sum(each.end_offset - each.start_offset for each in planned)
        partitions = len({(topic, each.partition) for topic, those in ranges.items() for each in those})
        self._wave = f"Wave {wave}: {len(planned)} tasks for {partitions} partitions of {len(ranges)} topics"
        self.show(self._wave, total=sum(self._ahead.values()))
        if not self.console.is_terminal:
            self.console.print(f"{self._wave}, {offsets:,} offsets", highlight=False)

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        """Move the bar by what the task covered."""
        del topic, planned
        self.advance(sum(each.end_offset - each.start_offset for each in result.ranges))

    def step_finished(self, topic: str, step: Step, seconds: float) -> None:
        """Say nothing: `committed` does."""

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        """Say what a commit brought."""
        rows = sum(each.file.rows for each in ranges if each.file)
        self.console.print(f"{topic}: committed {rows:,} records", highlight=False, style="dim")
        for each in ranges:
            if each.lost:
                self.console.print(f"[bold yellow]{topic}-{each.partition}[/]: recorded as lost {each.span}")

    def failed(self, topic: str, partition: int | None, error: ContextError) -> None:
        """Say what can't go on, and why."""
        where = topic if partition is None else f"{topic}-{partition}"
        self.say_error(where, error)

    def finished(self, report: JobReport) -> None:
        """Show the run's table."""
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
