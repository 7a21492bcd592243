"""Shows people a compaction: a bar over the files, then a table of what became of them."""

from __future__ import annotations

from typing import Self, assert_never

from archiver.terminal.amounts import counted, duration, share, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import NOTHING, Column, Listing
from archiver.upkeep.compact.report import (
    CompactEvent,
    CompactFinished,
    CompactReport,
    GroupFailed,
    GroupMerged,
    GroupsChosen,
    GroupsCommitted,
    TopicCompaction,
)


class CompactScreen(Bars):
    """An observer that shows people the compaction. Use as a context manager.

    A terminal gets a bar. Failures are shown as they come, the report at the end.
    """

    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")

    def __call__(self, event: CompactEvent) -> None:
        """Show an event."""
        match event:
            case GroupsChosen():
                self.clear()
                if event.groups:
                    total = sum(len(each.files) for each in event.groups)
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
    """An observer that tells people of compactions between other work: a line for each commit."""

    def __init__(self, console: TextConsole) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, event: CompactEvent) -> None:
        """Show an event, if it is a commit."""
        if isinstance(event, GroupsCommitted):
            done = event.done
            amount = f"{size(done.bytes_before)} to {size(done.bytes_after)}"
            before = counted(done.files_before, "file")
            self._console.print(f"{event.topic}: {before} became {done.files_after:,}, {amount}")


def print_report(console: TextConsole, report: CompactReport) -> None:
    """Show what was done, or would be."""
    console.print(_planned(report) if report.dry_run else _done(report))
    if report.dry_run:
        before = sum(each.planned_files for each in report.topics)
        after = sum(each.expected_files for each in report.topics)
        amount = size(sum(each.planned_bytes for each in report.topics))
        console.print(f"{counted(before, 'file')} with {amount} would become about {after:,}; nothing was changed")
        for each in report.topics:
            if each.planned_moves:
                moves = f"{counted(each.planned_moves, 'file')} with {size(each.planned_move_bytes)}"
                console.print(
                    f"{each.topic}: {moves} would move to partitions by {each.partitioned_by}; they become more files"
                    " where these have many values"
                )
        return
    done = report.done
    if not done.files_before:
        console.print(f"nothing to put together, {duration(report.seconds)}")
        return
    saved = 1 - done.bytes_after / done.bytes_before if done.bytes_before else 0.0
    console.print(
        f"{counted(done.files_before, 'file')} became {done.files_after:,},"
        f" {share(saved) if saved > 0 else 'nothing'} smaller, {duration(report.seconds)}"
    )
    for each in report.topics:
        if each.done.moved:
            console.print(
                f"{each.topic}: {counted(each.done.moved, 'file')} moved to partitions by {each.partitioned_by}"
            )
        if each.stopped:
            console.print(f"{each.topic}: stopped before all was done; run it again", style="yellow")


def _place_of(event: GroupFailed) -> str:
    """What could not be put together: the topic, its partition, and the files that stay."""
    place = event.topic if event.partition is None else f"{event.topic}, partition {event.partition}"
    if not event.paths:
        return place
    others = f" and {counted(len(event.paths) - 1, 'more file')}" if len(event.paths) > 1 else ""
    return f"{place}: {event.paths[0]}{others}"


def _planned(report: CompactReport) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="table", alone="in {}", kind="name", is_optional=True),
        Column(heading="files", alone="files: {}"),
        Column(heading="chosen", alone="chosen: {}"),
        Column(heading="size", alone="with {}"),
        Column(heading="become", alone="become about {}"),
        Column(heading="groups", alone="groups: {}", kind="text"),
    )
    for each in report.topics:
        listing.add(
            each.topic,
            each.table,
            f"{each.files:,}",
            f"{each.planned_files:,}",
            size(each.planned_bytes),
            f"{each.expected_files:,}",
            ", ".join(f"{number:,} {reason}" for reason, number in sorted(each.reasons.items())) or NOTHING,
        )
    return listing


def _done(report: CompactReport) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="table", alone="in {}", kind="name", is_optional=True),
        Column(heading="files", alone="files: {}"),
        Column(heading="became", alone="became {}"),
        Column(heading="size", alone="size: {}", kind="text"),
        Column(heading="records", alone="records: {}"),
        Column(heading="deleted before", alone="deleted before: {}"),
        Column(heading="commits", alone="commits: {}"),
        Column(heading="failed", alone="failed: {}"),
    )
    for each in report.topics:
        listing.add(each.topic, each.table, *_cells(each))
    return listing


def _cells(each: TopicCompaction) -> tuple[str, ...]:
    done = each.done
    failed = len(each.failures) + (each.error is not None)
    return (
        f"{done.files_before:,} of {each.files:,}",
        f"{done.files_after:,}",
        f"{size(done.bytes_before)} to {size(done.bytes_after)}" if done.files_before else NOTHING,
        f"{done.rows:,}",
        f"{done.removed:,}" if done.removed else NOTHING,
        f"{len(each.commits):,}",
        f"{failed:,}" if failed else NOTHING,
    )
