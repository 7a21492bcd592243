"""Shows people a search for orphans: a bar while it lists and deletes, then a table of what it found."""

from __future__ import annotations

from typing import assert_never

from rich.console import Console
from rich.table import Table

from archiver.observe.bars import Bars
from archiver.upkeep.orphans.report import (
    ObjectsListed,
    OrphanEvent,
    OrphanFailed,
    OrphansFinished,
    OrphansFound,
    OrphansRemoved,
    OrphansReport,
)

SHOWN = 20
"""How many paths of a topic people are shown. `--json` has all."""
MEGABYTE = 1_000_000


class OrphansScreen(Bars):
    """An observer that shows people the search. Use as a context manager.

    A terminal gets a bar. Failures are shown as they come, the report at the end.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, unit="objects")
        self._listed = 0
        self._orphans = 0
        self._removed = 0

    def __call__(self, event: OrphanEvent) -> None:
        """Show an event."""
        match event:
            case ObjectsListed():
                if not self._listed:
                    self.clear()
                self._listed += event.objects
                self.show(f"{event.topic}: listing", done=self._listed, total=None)
            case OrphansFound():
                self.clear()
                self._listed, self._orphans, self._removed = 0, event.orphans, 0
            case OrphansRemoved():
                self._removed += event.orphans
                self.show(f"{event.topic}: deleting", done=self._removed, total=self._orphans)
            case OrphanFailed():
                self.say_error(event.path or event.topic, event.error)
            case OrphansFinished():
                self.close()
                print_report(self.console, event.report)
            case _ as never:
                assert_never(never)


def print_report(console: Console, report: OrphansReport) -> None:
    """Show what was found, and what was done with it."""
    for topic in report.topics:
        for each in topic.orphans[:SHOWN]:
            console.print(f"{each.kind:>9}  {each.modified}  {each.size:>13,}  {each.path}", highlight=False)
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
