"""Describes an erasure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, assert_never

from archiver.terminal.amounts import counted, duration
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.expire_screen import purge_remarks, purged_json
from archiver.terminal.json_lines import Line, failures_json, finished_line
from archiver.terminal.owner_words import setting_words, snapshot_words
from archiver.upkeep.erase.report import (
    EraseEvent,
    EraseFailed,
    EraseFinished,
    EraseReport,
    FileSearched,
    FilesSearched,
    OwnedSnapshots,
    RecordsFound,
)

_SHOWN: Final = 5
_RANGES: Final = 100


class EraseScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")
        self._planned = 0
        self._done = 0

    @staticmethod
    def lines(event: EraseEvent) -> Iterator[Line]:
        if isinstance(event, EraseFinished):
            report = event.report
            yield "erased", _values(report)
            yield finished_line(succeeded=report.succeeded, dry_run=report.dry_run, seconds=report.seconds)

    def __call__(self, event: EraseEvent) -> None:
        match event:
            case OwnedSnapshots():
                self.close()  # the question comes next
                self.console.print(
                    f"{snapshot_words([snapshot.snapshot_id for snapshot in event.snapshots])} with erased records are"
                    f" kept by {setting_words(event.settings)}",
                    style="yellow",
                    soft_wrap=True,
                )
            case FilesSearched():
                self.clear()
                self._planned, self._done = event.files, 0
            case FileSearched():
                self._done += event.files
                self.show("searching", done=self._done, total=self._planned)
            case RecordsFound():
                self.pause()
            case EraseFailed():
                self.say_error(event.path, event.error)
            case EraseFinished():
                self.close()
                print_report(self.console, event.report)
            case _ as never:
                assert_never(never)


def print_report(console: TextConsole, report: EraseReport) -> None:
    amount = f"{counted(report.rows, 'row')} in {counted(report.files, 'file')}"
    if (retired := report.offset_count - report.rows) > 0:
        amount += f", and {counted(retired, 'retired record')} that the store still has,"
    if report.dry_run:
        console.print(f"{report.topic}: {amount} would be erased{_with_metadata(report)}; nothing was changed")
        _print_unjudged(console, report)
        return
    console.print(f"{report.topic}: {amount} erased{_with_metadata(report)}, {duration(report.seconds)}")
    if report.erasure is not None:
        console.print(f"erasure {report.erasure}; the condition's hash is {report.condition_hash}")
        console.print(f"its salt is {report.salt}: keep it, if you want to show one day which condition that was")
    for line in purge_remarks(report.purged):
        console.print(line, style="yellow", soft_wrap=True)
    for path in report.copies[:_SHOWN]:
        console.print(f"an upload that may hold some, too young to be deleted: {path}", style="yellow", soft_wrap=True)
    for path in report.local[:_SHOWN]:
        console.print(
            f"a file that the store denied may hold some, and others that are nowhere else: {path}. Remove it when you"
            " know that it isn't needed",
            style="yellow",
            soft_wrap=True,
        )
    if report.rewriters:
        runs = counted(len(report.rewriters), "other job")
        console.print(f"{runs} began to rewrite files before, and may still upload some", style="yellow")
    _print_others(console, report)
    if report.finished:
        console.print("no object of the store has these records any more")
    _print_unjudged(console, report)
    if report.partition_columns and report.commits:
        columns = ", ".join(report.partition_columns)
        console.print(
            f"files are in partitions by {columns}: manifests name those that went, with such values, until the"
            " snapshots of this run expire",
            style="yellow",
        )
    _print_unfinished(console, report)


def _with_metadata(report: EraseReport) -> str:
    return f", with {counted(len(report.metadata), 'entry', 'entries')} of metadata" if report.metadata else ""


def _print_unfinished(console: TextConsole, report: EraseReport) -> None:
    if report.purged.snapshots.owned:
        console.print(
            f"not finished: `archiver erase {report.topic} --finish --expire-protected-snapshots` expires the snapshots"
            " that the table's owner keeps",
            style="yellow",
        )
    elif {*report.unfinished} - {*report.unsearched}:
        console.print(
            f"not finished: run `archiver erase {report.topic} --finish` once nothing keeps the rest", style="yellow"
        )
    if report.is_searched_beside_builds or (report.rewriters and not report.unfinished):
        console.print(
            "not finished: a build of the index runs, which may have read such records before they left the table. Run"
            " the same command again when it has ended",
            style="yellow",
        )


def _print_others(console: TextConsole, report: EraseReport) -> None:
    for erasure in report.given_up:
        console.print(
            f"erasure {erasure} was given up: it had stopped before all its records were found. If its condition was"
            " another than this one's, run it again",
            style="yellow",
        )
    for erasure in report.unsearched:
        console.print(
            f"erasure {erasure} stopped before all its records were found: run it again with its condition",
            style="yellow",
        )
    for erasure in {*report.doubtful} - {report.erasure}:
        console.print(
            f"erasure {erasure} left records that it couldn't judge: run it again with its condition when they are"
            " decoded",
            style="yellow",
        )


def _print_unjudged(console: TextConsole, report: EraseReport) -> None:
    if not report.unjudged:
        return
    total = sum(report.unjudged_records.values())
    console.print(
        f"{counted(total, 'record')} can't be judged by the condition's columns and may be among those meant: what they"
        f" have isn't in these columns. Decode them (`archiver reprocess {report.topic} --all`) and erase again, or"
        " erase them by their offsets",
        style="yellow",
    )
    for partition, count in report.unjudged_records.items():
        spans = [
            f"{start}-{end - 1}" if end - start > 1 else str(start)
            for number, start, end in report.unjudged
            if number == partition
        ]
        more = ", …" if len(spans) > _SHOWN else ""
        console.print(f"  partition {partition}: {counted(count, 'record')}, offsets {', '.join(spans[:_SHOWN])}{more}")


def _values(report: EraseReport) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "table": report.table,
        "erasure": report.erasure,
        "condition_hash": report.condition_hash,
        "salt": report.salt,
        "records": report.rows,
        "files": report.files,
        "offsets": {str(partition): count for partition, count in sorted(report.offsets.items())},
        "commits": report.commits,
        "metadata_entries": len(report.metadata),
        "store": purged_json(report.purged),
        "copies_deleted": report.copies_deleted,
        "copies_left": list(report.copies),
        "local_deleted": report.local_deleted,
        "local_left": list(report.local),
        "partition_columns": list(report.partition_columns),
        "rewriting_runs": list(report.rewriters),
        "finished": list(report.finished),
        "unfinished": list(report.unfinished),
        "unsearched": list(report.unsearched),
        "given_up": list(report.given_up),
        "unjudged": {
            str(partition): {
                "records": count,
                "offsets": [[start, end] for of, start, end in report.unjudged if of == partition][:_RANGES],
            }
            for partition, count in report.unjudged_records.items()
        },
        "doubtful": list(report.doubtful),
        "failures": failures_json(report.failures),
    }
