"""Shows people a search for orphans: a bar while it lists and deletes, then a table of what it found."""

from __future__ import annotations

from typing import assert_never

from archiver.terminal.amounts import counted, duration, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import NOTHING, Column, Listing
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


class OrphansScreen(Bars):
    """An observer that shows people the search. Use as a context manager.

    A terminal gets a bar. Failures are shown as they come, the report at the end.
    """

    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="object")
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
                self.pause()
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


def print_report(console: TextConsole, report: OrphansReport) -> None:
    """Show what was found, and what was done with it."""
    for topic in report.topics:
        for each in topic.orphans[:SHOWN]:
            console.print(f"{each.kind:>9}  {each.modified}  {size(each.size):>9}  {each.path}", soft_wrap=True)
        if (more := len(topic.orphans) - SHOWN) > 0:
            console.print(f"{'':>9}  and {more:,} more; --json names them all", style="dim")
    console.print(_listing(report))
    total = sum(each.size for topic in report.topics for each in topic.orphans)
    found = counted(sum(len(each.orphans) for each in report.topics), "orphan")
    if not report.deletes:
        hint = "; run again with --delete to remove them" if any(each.orphans for each in report.topics) else ""
        console.print(f"{found} with {size(total)}; nothing was changed{hint}")
        return
    deleted = sum(len(each.deleted) for each in report.topics)
    console.print(f"{deleted:,} of {found} deleted, {duration(report.seconds)}")


def _listing(report: OrphansReport) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="table", alone="in {}", kind="name", is_optional=True),
        Column(heading="objects", alone="objects: {}"),
        Column(heading="orphans", alone="orphans: {}"),
        Column(heading="size", alone="with {}"),
        Column(heading="deleted", alone="deleted: {}"),
        Column(heading="kept", alone="kept: {}", kind="text"),
        Column(heading="failed", alone="failed: {}"),
    )
    for each in report.topics:
        listing.add(
            each.topic,
            each.table,
            f"{each.listed:,}",
            f"{len(each.orphans):,}",
            size(sum(one.size for one in each.orphans)),
            f"{len(each.deleted):,}" if report.deletes else NOTHING,
            ", ".join(f"{number:,} by {reason}" for reason, number in sorted(each.kept.items()) if number) or NOTHING,
            f"{len(each.failures) + (each.error is not None):,}" if not each.succeeded else NOTHING,
        )
    return listing
