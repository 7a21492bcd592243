"""Describes a transfer to Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from rich.text import Text

from archiver.republish.report import (
    GroupReport,
    TransferEvent,
    TransferFinished,
    TransferInterrupted,
    TransferMoved,
    TransferNoted,
    TransferReport,
    TransferStarted,
)
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import Line, error_json, error_or_none, finished_line

_MEGABYTE = 1_000_000


class TransferScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="offset")
        self._title = ""
        self._total = 0

    @staticmethod
    def lines(event: TransferEvent) -> Iterator[Line]:
        match event:
            case TransferNoted():
                yield "note", {"text": event.text}
            case TransferStarted():
                names = {"transfer": event.transfer, "topic": event.topic, "target": event.target}
                yield "transfer_started", {**names, "offsets_behind": event.behind, "resumed": event.resumed}
            case TransferMoved():
                moved = {"records": event.records, "size_bytes": event.size_bytes, "offsets_behind": event.behind}
                yield "moved", {**moved, "seconds": round(event.seconds, 3)}
            case TransferInterrupted():
                yield "interrupted", {"error": error_json(event.error), "pause_seconds": event.pause_seconds}
            case TransferFinished():
                yield "transferred", _values(event.report)
                yield finished_line(succeeded=event.report.succeeded, dry_run=False, seconds=event.report.seconds)
            case _ as never:
                assert_never(never)

    def __call__(self, event: TransferEvent) -> None:
        match event:
            case TransferNoted():
                self._say(event.text, "yellow")
            case TransferStarted():
                verb = "Going on" if event.resumed else "Moving"
                self._say(f"{verb}: {event.topic} to {event.target}, {event.behind:,} offsets to move")
                self._title, self._total = event.target, event.behind
                self.show(self._title, done=0, total=event.behind)
            case TransferMoved():
                self.show(self._title, done=self._total - event.behind, total=self._total)
            case TransferInterrupted():
                self.say_error(f"Interrupted, going on in {event.pause_seconds:.0f} s", event.error)
            case TransferFinished():
                self.close()
                self._report(event.report)
            case _ as never:
                assert_never(never)

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style), soft_wrap=True)

    def _report(self, report: TransferReport) -> None:
        megabytes = report.size_bytes / _MEGABYTE
        noun = "record" if report.records == 1 else "records"
        pace = f"{report.records / report.seconds:,.0f} records/s, {megabytes / report.seconds:,.1f} MB/s"
        self._say(
            f"{report.records:,} {noun}, {megabytes:,.1f} MB, in {report.seconds:.1f} s ({pace}), from {report.topic} "
            f"to {report.target}"
        )
        for group in report.groups:
            self._group(group)
        if report.offset_map is not None:
            self._say(f"Offset map: {report.offset_map}")

    def _group(self, group: GroupReport) -> None:
        if group.problem is not None:
            self.say_error(f"Group {group.group}", group.problem)
        if group.moved:
            places = ", ".join(f"{partition} at {offset:,}" for partition, offset in group.moved.items())
            self._say(f"Group {group.group} goes on in partition {places}")
        if group.ahead:
            self._say(f"Group {group.group} stands further already in partition {_listed(group.ahead)}")
        if group.waiting:
            self._say(
                f"Group {group.group} stands beyond what was moved in partition {_listed(group.waiting)}: archive and "
                "move the rest, then carry it over again",
                "yellow",
            )
        if group.behind:
            self._say(
                f"Group {group.group} has yet to read what the target had before, in partition "
                f"{_listed(group.behind)}, and stays there: let it read that first, then carry it over again",
                "yellow",
            )


def _listed(partitions: tuple[int, ...]) -> str:
    return ", ".join(str(partition) for partition in partitions)


def _values(report: TransferReport) -> dict[str, Any]:
    return {
        "transfer": report.transfer,
        "topic": report.topic,
        "target": report.target,
        "resumed": report.resumed,
        "records": report.records,
        "size_bytes": report.size_bytes,
        "transactions": report.transactions,
        "partitions": [
            {
                "partition": partition.partition,
                "start_offset": partition.start_offset,
                "next_offset": partition.next_offset,
                "records": partition.records,
            }
            for partition in report.partitions
        ],
        "groups": [
            {
                "group": group.group,
                "offsets": {str(partition): offset for partition, offset in group.moved.items()},
                "ahead": list(group.ahead),
                "waiting": list(group.waiting),
                "behind": list(group.behind),
                "problem": error_or_none(group.problem),
            }
            for group in report.groups
        ],
        "offset_map": None if report.offset_map is None else str(report.offset_map),
    }
