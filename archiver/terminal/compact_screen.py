"""Describes a compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self, assert_never

from archiver.terminal.amounts import counted, duration, share, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.fields import ShownField, fields_json, fields_listing
from archiver.terminal.json_lines import Line, error_json, finished_line
from archiver.terminal.listing import NOTHING, Column
from archiver.upkeep.compact.report import (
    CompactEvent,
    CompactFinished,
    CompactReport,
    GroupFailed,
    GroupMerged,
    GroupsChosen,
    GroupsCommitted,
    Merged,
    TopicCompaction,
)


class CompactScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")

    @staticmethod
    def lines(event: CompactEvent) -> Iterator[Line]:
        yield from CompactNotes.lines(event)
        if isinstance(event, CompactFinished):
            report = event.report
            for topic in report.topics:
                values = fields_json((*_NAMES, *_DONE), topic)
                yield "compacted", values | fields_json(_MERGED, topic.done)
            yield finished_line(succeeded=report.succeeded, dry_run=report.dry_run, seconds=report.seconds)

    def __call__(self, event: CompactEvent) -> None:
        match event:
            case GroupsChosen():
                self.clear()
                if event.groups:
                    total = sum(len(group.files) for group in event.groups)
                    self.show(f"{event.topic}: compacting", done=0, total=total)
            case GroupMerged():
                self.advance(len(event.group.files))
            case GroupFailed():
                self.advance(len(event.paths))
                self.say_error(_place_of(event), event.error)
            case GroupsCommitted():
                pass
            case CompactFinished():
                self.close()
                print_report(self.console, event.report)
            case _ as never:
                assert_never(never)


class CompactNotes:
    def __init__(self, console: TextConsole) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @staticmethod
    def lines(event: CompactEvent) -> Iterator[Line]:
        if isinstance(event, GroupsCommitted):
            values = {"topic": event.topic, "commit_id": event.commit_id}
            yield "compacted_files", values | fields_json(_MERGED, event.done)

    def __call__(self, event: CompactEvent) -> None:
        if isinstance(event, GroupsCommitted):
            done = event.done
            amount = f"{size(done.bytes_before)} to {size(done.bytes_after)}"
            before = counted(done.files_before, "file")
            self._console.print(f"{event.topic}: {before} became {done.files_after:,}, {amount}")


def print_report(console: TextConsole, report: CompactReport) -> None:
    console.print(fields_listing((*_NAMES, *(_PLANNED if report.dry_run else _DONE)), report.topics))
    if report.dry_run:
        _print_plan(console, report)
        return
    done = report.done
    if not done.files_before:
        console.print(f"nothing to compact, {duration(report.seconds)}")
        for topic in report.topics:
            _print_why_none(console, topic)
        return
    saved = 1 - done.bytes_after / done.bytes_before if done.bytes_before else 0.0
    console.print(
        f"{counted(done.files_before, 'file')} became {done.files_after:,},"
        f" {share(saved) if saved > 0 else 'nothing'} smaller, {duration(report.seconds)}"
    )
    for entry in report.topics:
        if entry.done.moved:
            console.print(
                f"{entry.topic}: {counted(entry.done.moved, 'file')} moved to partitions by {entry.partitioned_by}"
            )
        if entry.stopped:
            console.print(f"{entry.topic}: stopped before all was done; run it again", style="yellow")


def _print_plan(console: TextConsole, report: CompactReport) -> None:
    before = sum(topic.planned_files for topic in report.topics)
    after = sum(topic.expected_files for topic in report.topics)
    amount = size(sum(topic.planned_bytes for topic in report.topics))
    console.print(f"{counted(before, 'file')} with {amount} would become about {after:,}; nothing was changed")
    for topic in report.topics:
        if topic.planned_moves:
            moves = f"{counted(topic.planned_moves, 'file')} with {size(topic.planned_move_bytes)}"
            console.print(
                f"{topic.topic}: {moves} would move to partitions by {topic.partitioned_by}; they become more files"
                " where these have many values"
            )
    for topic in report.topics:
        if not topic.planned_files:
            _print_why_none(console, topic)


def _print_why_none(console: TextConsole, topic: TopicCompaction) -> None:
    """Small files stay if too few of them lie beside each other."""
    if not topic.small_files or topic.error is not None or topic.failures:
        return
    few = f"{topic.min_files:,}" if topic.fewer_merge else "two"
    advice = "; --min-files 2 merges fewer" if topic.fewer_merge else ": nothing can be merged"
    console.print(
        f"{topic.topic}: {topic.small_files:,} of {counted(topic.files, 'file')} are small, but no partition of the"
        f" table has {few} of one Kafka partition beside each other{advice}"
    )


def _place_of(event: GroupFailed) -> str:
    location = event.topic if event.partition is None else f"{event.topic}, partition {event.partition}"
    if not event.paths:
        return location
    more = f" and {counted(len(event.paths) - 1, 'more file')}" if len(event.paths) > 1 else ""
    return f"{location}: {event.paths[0]}{more}"


_NAMES: Final[tuple[ShownField[TopicCompaction], ...]] = (
    ShownField(name="topic", value=lambda it: it.topic, column=Column(heading="topic", kind="name")),
    ShownField(
        name="table",
        value=lambda it: it.table,
        column=Column(heading="table", alone="in {}", kind="name", is_optional=True),
    ),
)
_PLANNED: Final[tuple[ShownField[TopicCompaction], ...]] = (
    ShownField(value=lambda it: it.files, column=Column(heading="files", alone="files: {}")),
    ShownField(name="files", value=lambda it: it.planned_files, column=Column(heading="chosen", alone="chosen: {}")),
    ShownField(
        name="size_bytes",
        value=lambda it: it.planned_bytes,
        column=Column(heading="size", alone="with {}"),
        cell=lambda it: size(it.planned_bytes),
    ),
    ShownField(
        name="expected_files",
        value=lambda it: it.expected_files,
        column=Column(heading="become", alone="become about {}"),
    ),
    ShownField(name="groups", value=lambda it: len(it.planned)),
    ShownField(
        name="reasons",
        value=lambda it: dict(sorted(it.reasons.items())),
        column=Column(heading="groups", alone="groups: {}", kind="text"),
        cell=lambda it: ", ".join(f"{number:,} {why}" for why, number in sorted(it.reasons.items())) or NOTHING,
    ),
    ShownField(name="moved_files", value=lambda it: it.planned_moves),
)
_MERGED: Final[tuple[ShownField[Merged], ...]] = (
    ShownField(name="files_before", value=lambda it: it.files_before),
    ShownField(name="files_after", value=lambda it: it.files_after),
    ShownField(name="bytes_before", value=lambda it: it.bytes_before),
    ShownField(name="bytes_after", value=lambda it: it.bytes_after),
    ShownField(name="records", value=lambda it: it.rows),
    ShownField(name="removed_records", value=lambda it: it.removed),
    ShownField(name="moved_files", value=lambda it: it.moved),
)
_DONE: Final[tuple[ShownField[TopicCompaction], ...]] = (
    ShownField(
        name="files",
        value=lambda it: it.files,
        column=Column(heading="files", alone="files: {}"),
        cell=lambda it: f"{it.done.files_before:,} of {it.files:,}",
    ),
    ShownField(value=lambda it: it.done.files_after, column=Column(heading="became", alone="became {}")),
    ShownField(
        value=lambda it: it.done,
        column=Column(heading="size", alone="size: {}", kind="text"),
        cell=lambda it: f"{size(it.done.bytes_before)} to {size(it.done.bytes_after)}" if it.done.files_before else "-",
    ),
    ShownField(value=lambda it: it.done.rows, column=Column(heading="records", alone="records: {}")),
    ShownField(
        value=lambda it: it.done.removed or None, column=Column(heading="deleted before", alone="deleted before: {}")
    ),
    ShownField(
        name="commits",
        value=lambda it: list(it.commits),
        column=Column(heading="commits", alone="commits: {}"),
        cell=lambda it: f"{len(it.commits):,}",
    ),
    ShownField(
        value=lambda it: len(it.failures) + (it.error is not None) or None,
        column=Column(heading="failed", alone="failed: {}"),
    ),
    ShownField(name="planned", value=lambda it: fields_json(_PLANNED, it)),
    ShownField(name="partitioned_by", value=lambda it: it.partitioned_by),
    ShownField(name="small_files", value=lambda it: it.small_files),
    ShownField(name="discarded_groups", value=lambda it: it.again),
    ShownField(name="stopped", value=lambda it: it.stopped),
    ShownField(
        name="failures",
        value=lambda it: [{"files": [*paths], "error": error_json(why)} for paths, why in sorted(it.failures.items())],
    ),
    ShownField(name="error", value=lambda it: it.error),
)
