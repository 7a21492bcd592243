"""How a reprocessing looks: a bar over the files, and a table of the errors that were found and are gone."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from archiver.cli.bars import Bars
from archiver.cli.json_lines import error_json, write_line
from archiver.upkeep.reprocess_file import FileResult
from archiver.upkeep.reprocess_report import ReprocessReport
from schema_mapping.errors import ContextError


class BarObserver(Bars):
    """A bar on a terminal, nothing elsewhere; failures as they come. Use as a context."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, unit="files")

    def planned(self, files: int) -> None:
        """Begin a bar over so many files."""
        self.show("Reprocessing", done=0, total=files)

    def file_done(self, result: FileResult) -> None:
        """Move the bar."""
        del result
        self.advance()

    def failed(self, path: str, error: ContextError) -> None:
        """Say what stays as it is, and why."""
        self.advance()
        self.say_error(path, error)


def print_report(console: Console, report: ReprocessReport) -> None:
    """Show a person what was done."""
    if report.schema_registry_down is not None:
        console.print(f"[yellow]By the schemas last known[/]: {report.schema_registry_down}", highlight=False)
    if not report.found:
        console.print(f"{report.topic}: no such errors in {report.table}", highlight=False)
    else:
        console.print(_table(report))
    console.print(_outcome(report), highlight=False)


def write_report(report: ReprocessReport) -> None:
    """Tell a machine."""
    write_line(
        "reprocessed",
        succeeded=report.succeeded,
        topic=report.topic,
        table=report.table,
        dry_run=report.dry_run,
        schema_version=report.schema_version,
        commit_id=report.commit_id,
        schema_registry_down=error_json(report.schema_registry_down) if report.schema_registry_down else None,
        files_read=len(report.results) + len(report.failures),
        files_rewritten=report.files,
        errors=[
            {"part": part, "code": code, "found": found, "mended": report.mended[part, code]}
            for (part, code), found in sorted(report.found.items())
        ],
        failures=[{"file": path, **error_json(error)} for path, error in sorted(report.failures.items())],
        seconds=round(report.seconds, 3),
    )


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
