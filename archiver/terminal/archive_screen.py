"""Shows an archive job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, assert_never

from rich.text import Text

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
    SchemaEvent,
    SchemaRegistryDown,
    StepFinished,
    TableNoted,
    TaskFinished,
    TopicsOpened,
    WavePlanned,
)
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.report import JobReport, TopicReport
from archiver.terminal.amounts import clock_time, counted, duration, rates, share, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import Line, error_json, error_or_none, finished_line
from archiver.terminal.listing import NOTHING, Column, Listing
from archiver.terminal.schema_words import doubt_remark, fit_remarks, new_version, waiting_remark
from catalog.model import TranslatedRange
from schema_mapping.errors import ContextError

_IDLE_SECONDS = 3_600.0
SHOWN = 8
"""How many topics are named one by one as they are opened, and how many failures at the end."""


class ArchiveScreen(Bars):
    """Without a terminal: a line for each wave and topic.

    With `repeats`, a round is a line with the time.
    """

    def __init__(
        self, console: TextConsole, *, repeats: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(console, unit="offset")
        self._repeats = repeats
        self._clock = clock
        self._idle: tuple[str, float] | None = None
        self._outage: tuple[str, float] | None = None
        self._wave: str | None = None
        self._waves = 0
        self._known: dict[str, str] = {}
        self._ahead: dict[tuple[str, int], int] = {}
        self._waiting: dict[tuple[str, int], int] = {}
        self._failures: dict[str, str] = {}
        self._failed_before: dict[str, str] = {}

    @staticmethod
    def lines(event: JobEvent) -> Iterator[Line]:  # noqa: C901 - one case for each kind of event
        match event:
            case JobWaiting():
                yield "waiting", {"on": event.on, "error": error_json(event.error)}
            case TopicsOpened():
                yield "topics_opened", {"tables": dict(event.tables)}
            case SchemaRegistryDown() | SchemaChanged() | SchemaChangeWaiting() | SchemaDoubted() | TableNoted():
                yield _schema(event)
            case PartitionsSeen():
                yield "looked", _seen(event)
            case WavePlanned():
                planned = {
                    topic: [_range(item) for item in topic_ranges] for topic, topic_ranges in event.ranges.items()
                }
                yield "wave_planned", {"wave": event.wave, "ranges": planned}
            case TaskFinished():
                yield "task_finished", _task(event)
            case StepFinished():
                seconds = round(event.seconds, 6)
                yield "step_finished", {"topic": event.topic, "step": event.step, "seconds": seconds}
            case RangesCommitted():
                ranges = [_range(range_) | {"lost": range_.lost} for range_ in event.ranges]
                yield "committed", {"topic": event.topic, "ranges": ranges}
            case Failed():
                error = error_json(event.error)
                yield "failed", {"topic": event.topic, "partition": event.partition, "error": error}
            case RunFinished():
                yield from _run(event.report)
            case _ as never:
                assert_never(never)

    def __call__(self, event: JobEvent) -> None:  # noqa: C901 - one case for each kind of event
        match event:
            case JobWaiting():
                self._say_waiting(event)
            case TopicsOpened():
                self._say_opened(event)
            case PartitionsSeen():
                self._count_ahead(event)
            case SchemaRegistryDown() | SchemaChanged() | SchemaChangeWaiting() | SchemaDoubted() | TableNoted():
                self.console.print(Text.assemble((f"{event.topic}: ", "yellow"), _schema_remark(event)))
            case WavePlanned():
                self._begin_wave(event)
            case TaskFinished():
                self.advance(sum(range_.end_offset - range_.start_offset for range_ in event.result.ranges))
            case StepFinished():
                pass  # `RangesCommitted` shows what a commit added
            case RangesCommitted():
                self._say_committed(event)
            case Failed():
                self._say_failed(event)
            case RunFinished():
                self._show_report(event.report)
            case _ as never:
                assert_never(never)

    def _say_waiting(self, event: JobWaiting) -> None:
        text = Text.assemble((f"Waiting for {event.on}", "yellow"), f": {event.error.message}")
        self.console.print(text)

    def _say_opened(self, event: TopicsOpened) -> None:
        news = {topic: table for topic, table in sorted(event.tables.items()) if self._known.get(topic) != table}
        self._known.update(news)
        if len(news) > SHOWN:
            self.console.print(f"Archiving {counted(len(news), 'topic')}")
            return
        for topic, table in news.items():
            self.console.print(Text.assemble(topic, (" into ", "dim"), table))

    def _count_ahead(self, event: PartitionsSeen) -> None:
        for partition in event.partitions:
            self._ahead.setdefault((event.topic, partition.partition), partition.lag)
            self._waiting[event.topic, partition.partition] = partition.lag
        if self._wave is not None:
            self.show(self._wave, total=sum(self._ahead.values()))

    def _begin_wave(self, event: WavePlanned) -> None:
        ranges = event.ranges
        planned = [range_ for topic in ranges.values() for range_ in topic]
        offsets = sum(range_.end_offset - range_.start_offset for range_ in planned)
        partitions = len(
            {(topic, range_.partition) for topic, topic_ranges in ranges.items() for range_ in topic_ranges}
        )
        self._waves = event.wave
        self._wave = (
            f"Wave {event.wave}: {counted(len(planned), 'task')} for {counted(partitions, 'partition')} "
            f"of {counted(len(ranges), 'topic')}"
        )
        self.show(self._wave, total=sum(self._ahead.values()))
        if not self.console.is_terminal:
            self._print(f"{self._wave}, {counted(offsets, 'offset')}")

    def _say_committed(self, event: RangesCommitted) -> None:
        if not self._repeats or self._waves > 1:
            rows = sum(range_.rows for range_ in event.ranges)
            self._print(f"{event.topic}: committed {counted(rows, 'record')}", style="dim")
        for range_ in event.ranges:
            if range_.lost:
                head = (f"{_place(event.topic, range_.partition)}: ", "bold yellow")
                self.console.print(Text.assemble(head, f"recorded as lost: offsets {range_.span}"))

    def _say_failed(self, event: Failed) -> None:
        subject = _place(event.topic, event.partition)
        self._failures[subject] = str(event.error)
        if self._failed_before.get(subject) == str(event.error):
            self._print(f"{subject}: {type(event.error).__name__}, as before", style="red")
        else:
            self.say_error(subject, event.error)

    def _show_report(self, report: JobReport) -> None:
        self.clear()
        self._show_outage(report.error)
        active = [*filter(_is_active, report.topics)]
        if self._repeats and not active and report.error is None:
            self._say_idle("stopped" if report.stopped else _idle(sum(self._waiting.values())), report)
        else:
            self._idle = None
            news = any(topic.records or _lost(topic) for topic in active)
            if self.console.is_terminal and active and (news or not self._repeats):
                self.console.print(report_listing(active))
            elif not self.console.is_terminal:
                for topic in active:
                    self._print(report_line(topic))
            self._print(report_title(report), style="bold" if report.succeeded else "bold red")
            for line in _remarks(report, len(report.topics) - len(active)):
                self.console.print(line)
        self._wave, self._waves = None, 0
        self._failed_before, self._failures = self._failures, {}
        self._ahead.clear()
        self._waiting.clear()

    def _show_outage(self, error: ContextError | None) -> None:
        if error is None:
            if self._outage is not None and self._repeats:
                self._print(f"back again after {duration(self._clock() - self._outage[1])}", style="green")
            self._outage = None
        elif self._repeats and self._outage is not None and self._outage[0] == str(error):
            self._print(f"{type(error).__name__}, as before", style="red")
        else:
            self.say_error("The run ended early", error)
            self._outage = (str(error), self._clock() if self._outage is None else self._outage[1])

    def _say_idle(self, text: str, report: JobReport) -> None:
        """When idleness begins or changes, then once an hour."""
        now = self._clock()
        if self._idle is None or self._idle[0] != text or now - self._idle[1] >= _IDLE_SECONDS:
            self._print(f"{text}, {duration(report.seconds)}", style="dim")
            self._idle = (text, now)

    def _print(self, text: str, *, style: str = "") -> None:
        self.console.print(f"{clock_time()}  {text}" if self._repeats else text, style=style)


def report_title(report: JobReport) -> str:
    state = "stopped early" if report.stopped else "done" if report.succeeded else "with failures"
    source = sum(topic.metrics.source_bytes for topic in report.topics)
    speed = rates(report.records, source, report.seconds)
    size_read = f", {size(source)} read," if report.records else ""
    return (
        f"{counted(report.records, 'record')}{size_read} in {duration(report.seconds)}"
        f"{f' ({speed})' if speed else ''}, {state}"
    )


def report_line(topic: TopicReport) -> str:
    return (
        f"{topic.topic}: {counted(topic.records, 'record')}, {size(topic.metrics.source_bytes)} read, "
        f"{size(topic.file_bytes)} stored in {counted(topic.files, 'file')}, {_raw_share(topic)} kept raw, "
        f"{len(topic.failures):,} failed"
    )


def report_listing(topics: list[TopicReport]) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="table", alone="into {}", kind="name", is_optional=True),
        Column(heading="partitions", alone="partitions: {}"),
        Column(heading="records", alone="records: {}"),
        Column(heading="files", alone="files: {}"),
        Column(heading="read", alone="{} read"),
        Column(heading="stored", alone="{} stored"),
        Column(heading="kept raw", alone="{} kept raw"),
        Column(heading="failed", alone="{} failed"),
    )
    for topic in topics:
        listing.add(
            Text(topic.topic, style="bold"),
            topic.table,
            f"{len(topic.partitions):,}",
            f"{topic.records:,}",
            f"{topic.files:,}",
            size(topic.metrics.source_bytes),
            size(topic.file_bytes),
            _raw_share(topic),
            Text(f"{len(topic.failures):,}", style="bold red") if topic.failures else NOTHING,
        )
    return listing


def _raw_share(topic: TopicReport) -> str:
    return share(topic.raw_share) if topic.recognition.value.values else NOTHING


def _schema_remark(event: SchemaEvent) -> Text:
    match event:
        case SchemaRegistryDown():
            return Text("going on with the schemas last known: ").append_text(error_text(event.error))
        case SchemaChanged():
            return Text(new_version(event.version, event.changes))
        case SchemaChangeWaiting():
            return Text(waiting_remark(event.topic, event.changes))
        case SchemaDoubted():
            return Text(doubt_remark(event.topic, event.part, event.fit, event.doubt))
        case TableNoted():
            return Text("\n  ".join(event.notes))
        case _ as never:
            assert_never(never)


def _remarks(report: JobReport, idle: int) -> list[Text]:
    failed = [_place(topic.topic, partition) for topic in report.topics for partition, _ in topic.failures]
    remarks = [Text(f"{topic.topic}: {line}") for topic in report.topics for line in fit_remarks(topic.recognition)]
    if failed:
        more = f" and {len(failed) - SHOWN:,} more" if len(failed) > SHOWN else ""
        remarks.append(Text(f"Failed (see above): {', '.join(failed[:SHOWN])}{more}", style="red"))
    if idle and report.error is None:
        remarks.append(Text(f"Nothing new in {counted(idle, 'topic')}", style="dim"))
    return remarks


def _idle(waiting: int) -> str:
    if not waiting:
        return "nothing new"
    waits = "waits" if waiting == 1 else "wait"
    return f"nothing archived, {counted(waiting, 'offset')} {waits} for a full file (min_file_size, max_lag)"


def _lost(topic: TopicReport) -> bool:
    return any(partition.lost_offsets for partition in topic.partitions)


def _is_active(topic: TopicReport) -> bool:
    return bool(topic.records or topic.failures or _lost(topic))


def _place(topic: str, partition: int | None) -> str:
    return topic if partition is None else f"{topic}-{partition}"


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
        case TableNoted():
            return "table_noted", {"topic": event.topic, "notes": list(event.notes)}
        case _ as never:
            assert_never(never)


def _seen(event: PartitionsSeen) -> dict[str, Any]:
    behind = [
        {"partition": partition.partition, "next_offset": partition.next_offset, "last_stable": partition.last_stable}
        for partition in event.partitions
        if partition.next_offset < partition.last_stable
    ]
    return {"topic": event.topic, "partitions": len(event.partitions), "behind": behind}


def _task(event: TaskFinished) -> dict[str, Any]:
    result = event.result
    measures = {name: value for name, value in asdict(result.metrics).items() if not name.endswith("_seconds")}
    return {
        "topic": event.topic,
        "planned": _range(event.planned),
        "covered": [_range(range_) for range_ in result.ranges],
        **measures,
        "steps": {step: round(seconds, 6) for step, seconds in result.metrics.steps.items()},
        "seconds": round((result.finished_ns - result.started_ns) / 1e9, 6),
        "error": error_or_none(result.error),
    }


def _run(report: JobReport) -> Iterator[Line]:
    for topic in filter(_is_active, report.topics):
        yield "archived", _topic(topic)
    yield finished_line(
        succeeded=report.succeeded,
        dry_run=False,
        seconds=report.seconds,
        topics=len(report.topics),
        records=report.records,
        stopped=report.stopped,
        waves=report.waves,
        error=error_or_none(report.error),
    )


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
                "partition": partition.partition,
                "from_offset": partition.from_offset,
                "to_offset": partition.to_offset,
                "records": partition.records,
                "lost_offsets": partition.lost_offsets,
                "error": error_or_none(partition.error),
            }
            for partition in topic.partitions
        ],
        "error": error_or_none(topic.error),
    }


def _range(each: PlannedRange | TranslatedRange) -> dict[str, int]:
    return {"partition": each.partition, "start_offset": each.start_offset, "end_offset": each.end_offset}
