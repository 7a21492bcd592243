"""Describes a reprocessing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from rich.text import Text

from archiver.terminal.amounts import counted, duration
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import Line, error_or_none, failures_json, finished_line
from archiver.terminal.listing import Column, Listing
from archiver.upkeep.reprocess.report import (
    FileFailed,
    FileReprocessed,
    ReprocessEvent,
    ReprocessFinished,
    ReprocessPlanned,
    ReprocessReport,
)


class ReprocessScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")

    @staticmethod
    def lines(event: ReprocessEvent) -> Iterator[Line]:
        if not isinstance(event, ReprocessFinished):
            return
        report = event.report
        values = {
            "topic": report.topic,
            "table": report.table,
            "schema_version": report.schema_version,
            "commit_id": report.commit_id,
            "schema_registry_down": error_or_none(report.schema_registry_down),
            "files_read": len(report.results) + len(report.failures),
            "files_rewritten": report.files,
            "errors": [
                {"part": part, "code": code, "found": count, "mended": report.mended[part, code]}
                for (part, code), count in sorted(report.found.items())
            ],
            "failures": failures_json(report.failures),
        }
        yield "reprocessed", values
        yield finished_line(succeeded=report.succeeded, dry_run=report.dry_run, seconds=report.seconds)

    def __call__(self, event: ReprocessEvent) -> None:
        match event:
            case ReprocessPlanned():
                self.show("Reprocessing", done=0, total=event.files)
            case FileReprocessed():
                self.advance()
            case FileFailed():
                self.advance()
                self.say_error(event.path, event.error)
            case ReprocessFinished():
                self.close()
                print_report(self.console, event.report)
            case _ as never:
                assert_never(never)


def print_report(console: TextConsole, report: ReprocessReport) -> None:
    if report.schema_registry_down is not None:
        head = ("By the schemas last known: ", "yellow")
        console.print(Text.assemble(head, error_text(report.schema_registry_down)))
    if not report.found:
        console.print(f"{report.topic}: no such errors in {report.table}")
    else:
        console.print(f"{report.topic} in {report.table}", style="bold")
        console.print(_listing(report))
    console.print(_outcome(report))


def _listing(report: ReprocessReport) -> Listing:
    mended = "would decode" if report.dry_run else "decoded"
    listing = Listing(
        Column(heading="part", kind="name"),
        Column(heading="error", kind="name"),
        Column(heading="found", alone="found: {}"),
        Column(heading=mended, alone=f"{mended}: {{}}"),
    )
    for (part, code), count in sorted(report.found.items()):
        listing.add(part, code, f"{count:,}", f"{report.mended[part, code]:,}")
    return listing


def _outcome(report: ReprocessReport) -> str:
    read = counted(len(report.results) + len(report.failures), "file")
    if report.dry_run:
        return f"{report.files:,} of {read} would be rewritten; nothing was changed"
    if report.commit_id is None:
        return f"{read} read, none rewritten"
    return (
        f"{report.files:,} of {read} rewritten in commit {report.commit_id} "
        f"(schema version {report.schema_version}), {duration(report.seconds)}"
    )
