"""Describes a retirement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, Self, assert_never

from archiver.terminal.amounts import counted, duration, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.fields import ShownField, fields_json, fields_listing
from archiver.terminal.json_lines import Line, failures_json, finished_line
from archiver.terminal.listing import NOTHING, Column
from archiver.terminal.owner_words import setting_words, snapshot_words
from archiver.upkeep.removal.purge import Purged
from archiver.upkeep.retire.report import (
    ExpireEvent,
    ExpireFailed,
    ExpireFinished,
    ExpireReport,
    FilesRetired,
    RetirementPlanned,
    TopicRetired,
)
from catalog.iceberg.deletion_gate import GC_ENABLED
from catalog.ranges.legal_holds import CONFIG_HOLD

_SHOWN = 5


class ExpireScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")
        self._planned = 0
        self._done = 0

    @staticmethod
    def lines(event: ExpireEvent) -> Iterator[Line]:
        if isinstance(event, ExpireFinished):
            report = event.report
            for topic in report.topics:
                yield "retired", fields_json(_TOPIC, topic)
            yield finished_line(succeeded=report.succeeded, dry_run=report.dry_run, seconds=report.seconds)

    def __call__(self, event: ExpireEvent) -> None:
        match event:
            case RetirementPlanned():
                self.pause()
                self._planned, self._done = event.files, 0
            case FilesRetired():
                self._done += event.files
                self.show(f"{event.topic}: retiring", done=self._done, total=self._planned)
            case ExpireFailed():
                self.say_error(f"{event.topic}: {event.path}" if event.path else event.topic, event.error)
            case ExpireFinished():
                self.close()
                print_report(self.console, event.report)
            case _ as never:
                assert_never(never)


class ExpireNotes:
    def __init__(self, console: TextConsole) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @staticmethod
    def lines(event: ExpireEvent) -> Iterator[Line]:
        for topic in event.report.topics if isinstance(event, ExpireFinished) else ():
            if topic.first_offsets or topic.files or topic.purged.deleted:
                yield "retired", fields_json(_TOPIC, topic)

    def __call__(self, event: ExpireEvent) -> None:
        for topic in event.report.topics if isinstance(event, ExpireFinished) else ():
            parts = []
            if topic.files:
                parts.append(f"{counted(topic.files, 'file')} with {counted(topic.rows, 'row')} retired")
            if topic.purged.deleted:
                parts.append(f"{counted(topic.purged.deleted, 'removed file')} deleted from the store")
            if topic.purged.shared and topic.files:
                parts.append(f"{counted(len(topic.purged.left), 'removed file')} kept in the store (`{GC_ENABLED}`)")
            if parts:
                self._console.print(f"{topic.topic}: {', '.join(parts)}")


def print_report(console: TextConsole, report: ExpireReport) -> None:
    hidden = _DELETED if report.dry_run else None
    console.print(fields_listing([field for field in _TOPIC if field is not hidden], report.topics))
    for topic in report.topics:
        for line in _remarks(topic):
            console.print(f"{topic.topic}: {line}", style="yellow")
    if report.dry_run:
        console.print("nothing was changed")
        return
    rows = sum(topic.rows for topic in report.topics)
    console.print(f"{counted(rows, 'row')} retired, {duration(report.seconds)}")


def purge_remarks(purged: Purged) -> list[str]:
    remarks = []
    if purged.shared:
        remarks.append(
            f"{counted(len(purged.left), 'removed file')} {_stay(len(purged.left))} in the store, and no snapshot"
            f" expires: the table's `{GC_ENABLED}` is not `true`, as another table may share its files. Once it is"
            " `true`, the next run deletes them"
        )
    if purged.snapshots.owned:
        remarks.append(
            "removed files stay in the store as long as the table's owner keeps"
            f" {snapshot_words([snapshot.snapshot_id for snapshot in purged.snapshots.owned])}:"
            f" {setting_words(purged.snapshots.settings)}"
        )
    if purged.held:
        remarks.append(
            f"{counted(purged.held, 'removed file')} {_stay(purged.held)} in the store: a legal hold is on them"
        )
    if purged.snapshots.named:
        named = ", ".join(f"{name} (snapshot {at})" for name, at in sorted(purged.snapshots.named.items())[:_SHOWN])
        remarks.append(f"removed files stay in the store as long as these tags and branches have them: {named}")
    if purged.snapshots.others:
        ids = ", ".join(str(snapshot.snapshot_id) for snapshot in purged.snapshots.others[:_SHOWN])
        remarks.append(f"removed files stay in the store as long as these snapshots of others have them: {ids}")
    if purged.snapshots.young:
        waiting = counted(len(purged.left) - purged.held, "removed file")
        remarks.append(f"{waiting} wait for younger snapshots to expire; the next run deletes them")
    return remarks


def _remarks(topic: TopicRetired) -> list[str]:
    remarks = []
    if not topic.has_limits:
        remarks.append("no `retention` or `retention_size` is configured: nothing goes")
    remarks += [f"{reason}: it needs `archiver expire {topic.topic} --yes`" for reason in topic.needs_consent]
    remarks += [f"partition {number}: {_hold(topic.topic, hold)}" for number, hold in sorted(topic.held.items())]
    remarks += [
        f"partition {number}: a file that can't go keeps more than that: {path}. The registry doesn't know whose"
        " records it has: run `archiver registry rebuild`, which adds ranges that journal or footers know"
        for number, path in sorted(topic.kept.items())
    ]
    if topic.journal is not None and topic.journal.written:
        remarks.append(f"the journal's {topic.journal.before:,} objects with commits are {topic.journal.after:,}")
    return remarks + purge_remarks(topic.purged)


def _hold(topic: str, hold: str) -> str:
    if hold == CONFIG_HOLD:
        return "`hold = true` in the topic's section keeps more than that"
    return f"hold {hold} keeps more than that. Release it, if that is right: `archiver hold {topic} --release {hold}`"


def _beginnings(topic: TopicRetired) -> str:
    starts = [f"{offset:,} ({number})" for number, offset in sorted(topic.first_offsets.items())]
    more = f", and {len(starts) - _SHOWN} more" if len(starts) > _SHOWN else ""
    return (", ".join(starts[:_SHOWN]) + more) or NOTHING


def _stay(number: int) -> str:
    return "stays" if number == 1 else "stay"


def purged_json(purged: Purged) -> dict[str, Any]:
    return {
        "deleted_files": purged.deleted,
        "deleted_bytes": purged.size_bytes,
        "left_files": list(purged.left),
        "held_files": purged.held,
        "kept_by_gc_enabled": purged.shared,
        "kept_by_owner": {
            "settings": dict(purged.snapshots.settings),
            "snapshots": [snapshot.snapshot_id for snapshot in purged.snapshots.owned],
        },
        "needed_by_snapshots": [
            snapshot.snapshot_id for snapshot in (*purged.snapshots.young, *purged.snapshots.others)
        ],
        "needed_by_tags_and_branches": dict(purged.snapshots.named),
        "failures": failures_json(purged.failures),
    }


_DELETED: Final[ShownField[TopicRetired]] = ShownField(
    value=lambda it: it.purged.deleted, column=Column(heading="deleted", alone="deleted from the store: {}")
)
_TOPIC: Final[tuple[ShownField[TopicRetired], ...]] = (
    ShownField(name="topic", value=lambda it: it.topic, column=Column(heading="topic", kind="name")),
    ShownField(name="table", value=lambda it: it.table),
    ShownField(name="has_limits", value=lambda it: it.has_limits),
    ShownField(name="files", value=lambda it: it.files, column=Column(heading="files", alone="files: {}")),
    ShownField(name="records", value=lambda it: it.rows, column=Column(heading="records", alone="records: {}")),
    ShownField(
        name="size_bytes",
        value=lambda it: it.size_bytes,
        column=Column(heading="size", alone="with {}"),
        cell=lambda it: size(it.size_bytes),
    ),
    ShownField(
        name="rewritten_files",
        value=lambda it: it.rewritten,
        column=Column(heading="rewritten", alone="rewritten: {}", is_optional=True),
        cell=lambda it: f"{it.rewritten:,}" if it.rewritten else NOTHING,
    ),
    _DELETED,
    ShownField(
        name="first_offsets",
        value=lambda it: {str(partition): offset for partition, offset in sorted(it.first_offsets.items())},
        column=Column(heading="begins at", alone="begins at {}", kind="text"),
        cell=_beginnings,
    ),
    ShownField(name="commits", value=lambda it: list(it.commits)),
    ShownField(name="stopped", value=lambda it: it.stopped),
    ShownField(name="needs_consent", value=lambda it: list(it.needs_consent)),
    ShownField(
        name="held_partitions",
        value=lambda it: {str(partition): hold for partition, hold in sorted(it.held.items())},
    ),
    ShownField(
        name="kept_partitions",
        value=lambda it: {str(partition): path for partition, path in sorted(it.kept.items())},
    ),
    ShownField(name="store", value=lambda it: purged_json(it.purged)),
    ShownField(name="journal", value=lambda it: None if it.journal is None else asdict(it.journal)),
    ShownField(name="failures", value=lambda it: failures_json(it.failures)),
    ShownField(name="error", value=lambda it: it.error),
)
