"""Describes a search for orphans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, assert_never

from archiver.terminal.amounts import counted, duration, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.fields import ShownField, fields_json, fields_listing
from archiver.terminal.json_lines import Line, failures_json, finished_line
from archiver.terminal.listing import Column
from archiver.upkeep.orphans.report import (
    ObjectsListed,
    OrphanEvent,
    OrphanFailed,
    OrphansFinished,
    OrphansFound,
    OrphansRemoved,
    OrphansReport,
    TopicOrphans,
)

SHOWN = 20
"""How many paths of a topic people are shown. `--json` has all."""


class OrphansScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="object")
        self._listed = 0
        self._orphans = 0
        self._removed = 0

    @staticmethod
    def lines(event: OrphanEvent) -> Iterator[Line]:
        if isinstance(event, OrphansFinished):
            report = event.report
            for topic in report.topics:
                yield "orphans", fields_json(_TOPIC, topic)
            yield finished_line(
                succeeded=report.succeeded,
                dry_run=not report.deletes,
                seconds=report.seconds,
                older_than_seconds=report.older_than,
                spool_folders=report.spool_folders,
            )

    def __call__(self, event: OrphanEvent) -> None:
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
    for topic in report.topics:
        for item in topic.orphans[:SHOWN]:
            console.print(f"{item.kind:>9}  {item.modified}  {size(item.size):>9}  {item.path}", soft_wrap=True)
        if (more := len(topic.orphans) - SHOWN) > 0:
            console.print(f"{'':>9}  and {more:,} more; --json names them all", style="dim")
    hidden = None if report.deletes else _DELETED
    console.print(fields_listing([field for field in _TOPIC if field is not hidden], report.topics))
    total = sum(item.size for topic in report.topics for item in topic.orphans)
    amount = counted(sum(len(topic.orphans) for topic in report.topics), "orphan")
    if not report.deletes:
        hint = "; run again with --delete to remove them" if any(topic.orphans for topic in report.topics) else ""
        console.print(f"{amount} with {size(total)}; nothing was changed{hint}")
        return
    deleted = sum(len(topic.deleted) for topic in report.topics)
    console.print(f"{deleted:,} of {amount} deleted, {duration(report.seconds)}")


def _objects(topic: TopicOrphans) -> list[dict[str, Any]]:
    deleted = {orphan.path for orphan in topic.deleted}
    return [
        {
            "path": orphan.path,
            "kind": orphan.kind,
            "size_bytes": orphan.size,
            "modified": orphan.modified,
            "deleted": orphan.path in deleted,
        }
        for orphan in topic.orphans
    ]


_DELETED: Final[ShownField[TopicOrphans]] = ShownField(
    value=lambda it: len(it.deleted), column=Column(heading="deleted", alone="deleted: {}")
)
_TOPIC: Final[tuple[ShownField[TopicOrphans], ...]] = (
    ShownField(name="topic", value=lambda it: it.topic, column=Column(heading="topic", kind="name")),
    ShownField(
        name="table",
        value=lambda it: it.table,
        column=Column(heading="table", alone="in {}", kind="name", is_optional=True),
    ),
    ShownField(name="objects", value=lambda it: it.listed, column=Column(heading="objects", alone="objects: {}")),
    ShownField(
        name="orphans",
        value=_objects,
        column=Column(heading="orphans", alone="orphans: {}"),
        cell=lambda it: f"{len(it.orphans):,}",
    ),
    ShownField(
        value=lambda it: size(sum(orphan.size for orphan in it.orphans)), column=Column(heading="size", alone="with {}")
    ),
    _DELETED,
    ShownField(
        name="kept",
        value=lambda it: {reason: number for reason, number in sorted(it.kept.items()) if number},
        column=Column(heading="kept", alone="kept: {}", kind="text"),
        cell=lambda it: ", ".join(f"{number:,} by {why}" for why, number in sorted(it.kept.items()) if number) or "-",
    ),
    ShownField(
        value=lambda it: len(it.failures) + (it.error is not None) or None,
        column=Column(heading="failed", alone="failed: {}"),
    ),
    ShownField(name="needed_again", value=lambda it: [orphan.path for orphan in it.needed_again]),
    ShownField(name="failures", value=lambda it: failures_json(it.failures)),
    ShownField(name="error", value=lambda it: it.error),
)
