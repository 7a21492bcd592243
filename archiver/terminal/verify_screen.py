"""Describes a verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, assert_never

from rich.text import Text

from archiver.terminal.amounts import counted, duration, rates, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import Line, error_json, finished_line
from archiver.terminal.listing import NOTHING, Column, Listing
from archiver.upkeep.verify.document import topic_json
from archiver.upkeep.verify.report import (
    FaultFound,
    FilesVerified,
    KafkaCompared,
    TopicFailed,
    TopicVerified,
    VerifiedTopic,
    VerifyEvent,
    VerifyFinished,
    VerifyPlanned,
)
from schema_mapping.errors import ContextError

SHOWN: Final = 50
"""How many faults of a topic people are shown. The report and `--json` have all."""


class VerifyScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="file")
        self._faults: Counter[str] = Counter()
        self._compared = 0

    @staticmethod
    def lines(event: VerifyEvent) -> Iterator[Line]:
        match event:
            case VerifyPlanned():
                values = {"files": event.files, "size_bytes": event.size_bytes, "resumed": event.resumed}
                yield "planned", {"topic": event.topic, **values}
            case FaultFound():
                yield "fault", {"topic": event.topic, **event.fault.to_json()}
            case TopicVerified():
                yield "verified", topic_json(event.report)
            case TopicFailed():
                yield "failed", {"topic": event.topic, "error": error_json(event.error)}
            case VerifyFinished():
                report = event.report
                yield finished_line(
                    succeeded=report.succeeded,
                    dry_run=False,
                    seconds=report.seconds,
                    topics=len(report.topics),
                    failed=len(report.failed),
                    faults=sum(len(topic.faults) for topic in report.topics),
                    records=sum(topic.rows for topic in report.topics),
                    report=list(event.paths),
                    is_signed=event.is_signed,
                )
            case _:
                return

    def __call__(self, event: VerifyEvent) -> None:
        match event:
            case VerifyPlanned():
                self.clear()
                title = f"{event.topic}: reading {size(event.size_bytes)}"
                self.show(title, total=event.files + event.resumed, done=event.resumed)
            case FilesVerified():
                self.advance(event.files)
            case KafkaCompared():
                self._compared += event.rows
                self.show(f"{event.topic}: comparing with Kafka, {self._compared:,} records", total=None)
            case FaultFound():
                self._say(event)
            case TopicVerified():
                self.clear()
                self._compared = 0
                print_topic(self.console, event.report)
            case TopicFailed():
                self.clear()
                if isinstance(event.error, ContextError):
                    self.say_error(event.topic, event.error)
            case VerifyFinished():
                self.close()
                _print_end(self.console, event)
            case _ as never:
                assert_never(never)

    def _say(self, event: FaultFound) -> None:
        self._faults[event.topic] += 1
        if self._faults[event.topic] > SHOWN:
            return
        fault = event.fault
        where = Text.assemble((f"{event.topic} {fault.place}".rstrip(), "bold red"))
        self.console.print(Text.assemble(where, f": {fault.kind}: {fault.message}"), soft_wrap=True)


def print_topic(console: TextConsole, topic: VerifiedTopic) -> None:
    if (more := len(topic.faults) - SHOWN) > 0:
        console.print(f"and {counted(more, 'more fault')}; --report and --json have them all", style="dim")
    state = "is as it was archived" if topic.succeeded else f"has {counted(len(topic.faults), 'fault')}"
    speed = rates(topic.rows, topic.size_bytes, topic.seconds)
    console.print(
        f"{topic.topic} {state}: {counted(topic.rows, 'record')} proven in {counted(topic.files, 'file')}"
        f"{f', {speed}' if speed else ''}"
    )
    listing = Listing(
        Column(heading="partition", alone=f"{topic.topic}/{{}}", kind="name"),
        Column(heading="proven", alone="proven: {}"),
        Column(heading="offsets", alone="up to {}"),
        Column(heading="gaps", alone="gaps: {}", kind="text"),
    )
    for partition in topic.partitions:
        gaps: Counter[str] = Counter()
        for gap in partition.gaps:
            gaps[gap.kind] += gap.count
        listing.add(
            str(partition.partition),
            f"{partition.rows:,}",
            f"{partition.end_offset:,}",
            ", ".join(f"{kind} {number:,}" for kind, number in sorted(gaps.items())) or NOTHING,
        )
    console.print(listing)
    for note in topic.notes:
        console.print(f"  {note}", style="dim")
    console.print(f"  root {topic.root}", style="dim", soft_wrap=True)


def _print_end(console: TextConsole, event: VerifyFinished) -> None:
    if event.paths:
        signed = "signed" if event.is_signed else "not signed: set signing_key in [audit]"
        console.print(f"report: {', '.join(event.paths)} ({signed})", soft_wrap=True)
    console.print(f"took {duration(event.report.seconds)}", style="dim")
