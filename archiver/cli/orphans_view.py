"""How a search for orphans looks: a bar while it lists and deletes, then a table of what was found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from archiver.cli.bars import Bars
from archiver.cli.json_lines import error_json, write_line
from archiver.upkeep.orphan_report import Orphan, OrphansReport, TopicOrphans
from schema_mapping.errors import ContextError

SHOWN = 20
"""So many paths of a topic are shown to a person; `--json` has all."""
MEGABYTE = 1_000_000


class BarObserver(Bars):
    """A bar on a terminal, nothing elsewhere; failures as they come, unless `is_silent`. Use as a context."""

    def __init__(self, console: Console, *, is_silent: bool) -> None:
        super().__init__(console, unit="objects", is_silent=is_silent)
        self._listed = 0
        self._orphans = 0
        self._removed = 0

    def listed(self, topic: str, objects: int) -> None:
        """Count them."""
        if not self._listed:
            self.clear()
        self._listed += objects
        self.show(f"{topic}: listing", done=self._listed, total=None)

    def found(self, topic: str, orphans: int) -> None:
        """Remember it for the bar over what goes."""
        del topic
        self.clear()
        self._listed, self._orphans, self._removed = 0, orphans, 0

    def removed(self, topic: str, orphans: int) -> None:
        """Move the bar."""
        self._removed += orphans
        self.show(f"{topic}: deleting", done=self._removed, total=self._orphans)

    def failed(self, topic: str, path: str | None, error: ContextError) -> None:
        """Say what stays as it is, and why."""
        self.say_error(path or topic, error)


def print_report(console: Console, report: OrphansReport) -> None:
    """Show a person what was found, and what became of it."""
    for topic in report.topics:
        for each in topic.orphans[:SHOWN]:
            console.print(f"{each.kind:>9}  {_time(each)}  {each.size:>13,}  {each.path}", highlight=False)
        if (more := len(topic.orphans) - SHOWN) > 0:
            console.print(f"{'':>9}  and {more:,} more; --json names them all", style="dim")
    console.print(_table(report))
    size = sum(each.size for topic in report.topics for each in topic.orphans)
    found = sum(len(each.orphans) for each in report.topics)
    if not report.deletes:
        hint = "; run again with --delete to remove them" if found else ""
        console.print(f"{found:,} orphans with {size / MEGABYTE:,.1f} MB; nothing was changed{hint}", highlight=False)
        return
    deleted = sum(len(each.deleted) for each in report.topics)
    console.print(f"{deleted:,} of {found:,} orphans deleted, {report.seconds:.1f} s", highlight=False)


def write_report(report: OrphansReport) -> None:
    """Tell a machine: a line for each topic with every object, and one for the run."""
    for each in report.topics:
        write_line("orphans", **_topic(each))
    write_line(
        "finished",
        succeeded=report.succeeded,
        deletes=report.deletes,
        older_than_seconds=report.older_than,
        spool_folders=report.spool_folders,
        seconds=round(report.seconds, 3),
    )


def _topic(topic: TopicOrphans) -> dict[str, Any]:
    deleted = {each.path for each in topic.deleted}
    return {
        "topic": topic.topic,
        "table": topic.table,
        "objects": topic.listed,
        "orphans": [
            {
                "path": each.path,
                "kind": each.kind,
                "size_bytes": each.size,
                "modified": _time(each),
                "deleted": each.path in deleted,
            }
            for each in topic.orphans
        ],
        "needed_again": [each.path for each in topic.needed_again],
        "kept": {reason: number for reason, number in sorted(topic.kept.items()) if number},
        "failures": [{"file": path, **error_json(error)} for path, error in sorted(topic.failures.items())],
        "error": error_json(topic.error) if topic.error else None,
    }


def _table(report: OrphansReport) -> Table:
    table = Table(title="Orphans", title_justify="left")
    table.add_column("topic")
    table.add_column("table")
    for heading in ("objects", "orphans", "MB", "deleted", "kept", "failed"):
        table.add_column(heading, justify="right")
    for each in report.topics:
        table.add_row(
            each.topic,
            each.table,
            f"{each.listed:,}",
            f"{len(each.orphans):,}",
            f"{sum(one.size for one in each.orphans) / MEGABYTE:,.1f}",
            f"{len(each.deleted):,}" if report.deletes else "-",
            ", ".join(f"{number:,} by {reason}" for reason, number in sorted(each.kept.items()) if number) or "-",
            str(len(each.failures) + (each.error is not None)) if not each.succeeded else "-",
        )
    return table


def _time(each: Orphan) -> str:
    return datetime.fromtimestamp(each.modified_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
