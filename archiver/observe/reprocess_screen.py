"""Shows people a reprocessing: a bar over the files, then a table of the errors found and corrected."""

from __future__ import annotations

from typing import assert_never

from rich.console import Console
from rich.table import Table

from archiver.observe.bars import Bars
from archiver.upkeep.reprocess.report import (
    FileFailed,
    FileReprocessed,
    FilesPlanned,
    ReprocessEvent,
    ReprocessFinished,
    ReprocessReport,
)


class ReprocessScreen(Bars):
    """An observer that shows people the reprocessing. Use as a context manager.

    A terminal gets a bar. Failures are shown as they come, the report at the end.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, unit="files")

    def __call__(self, event: ReprocessEvent) -> None:
        """Show an event."""
        match event:
            case FilesPlanned():
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


def print_report(console: Console, report: ReprocessReport) -> None:
    """Show what was done."""
    if report.schema_registry_down is not None:
        console.print(f"[yellow]By the schemas last known[/]: {report.schema_registry_down}", highlight=False)
    if not report.found:
        console.print(f"{report.topic}: no such errors in {report.table}", highlight=False)
    else:
        console.print(_table(report))
    console.print(_outcome(report), highlight=False)


def _table(report: ReprocessReport) -> Table:
    table = Table(title=f"{report.topic} in {report.table}", title_justify="left")
    table.add_column("part")
    table.add_column("error")
    table.add_column("found", justify="right")
    table.add_column("would decode" if report.dry_run else "decoded", justify="right")
    for (part, code), found in sorted(report.found.items()):
        table.add_row(part, code, f"{found:,}", f"{report.mended[part, code]:,}")
    return table


def _outcome(report: ReprocessReport) -> str:
    read = len(report.results) + len(report.failures)
    if report.dry_run:
        return f"{report.files} of {read} files would be rewritten; nothing was changed"
    if report.commit_id is None:
        return f"{read} files read, none rewritten"
    return (
        f"{report.files} of {read} files rewritten in commit {report.commit_id} "
        f"(schema version {report.schema_version}), {report.seconds:.1f} s"
    )
