"""Shows a transfer to Kafka as JSON lines: notes, each transaction, interruptions, and the report at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from archiver.republish.report import (
    TransferEvent,
    TransferFinished,
    TransferInterrupted,
    TransferMoved,
    TransferNoted,
    TransferReport,
    TransferStarted,
)
from archiver.terminal.json_lines import Line, error_json


def transfer_lines(event: TransferEvent) -> Iterator[Line]:
    """Make the line of an event."""
    match event:
        case TransferNoted():
            yield "note", {"text": event.text}
        case TransferStarted():
            yield (
                "transfer_started",
                {
                    "transfer": event.transfer,
                    "topic": event.topic,
                    "target": event.target,
                    "offsets_behind": event.behind,
                    "resumed": event.resumed,
                },
            )
        case TransferMoved():
            yield (
                "moved",
                {
                    "records": event.records,
                    "bytes": event.size_bytes,
                    "offsets_behind": event.behind,
                    "seconds": round(event.seconds, 3),
                },
            )
        case TransferInterrupted():
            yield "interrupted", {"error": error_json(event.error), "pause_seconds": event.pause_seconds}
        case TransferFinished():
            yield "transferred", _report(event.report)
        case _ as never:
            assert_never(never)


def _report(report: TransferReport) -> dict[str, object]:
    return {
        "succeeded": report.succeeded,
        "transfer": report.transfer,
        "topic": report.topic,
        "target": report.target,
        "resumed": report.resumed,
        "records": report.records,
        "bytes": report.size_bytes,
        "transactions": report.transactions,
        "seconds": round(report.seconds, 3),
        "partitions": [
            {
                "partition": each.partition,
                "start_offset": each.start_offset,
                "next_offset": each.next_offset,
                "records": each.records,
            }
            for each in report.partitions
        ],
        "groups": [
            {
                "group": each.group,
                "offsets": {str(partition): offset for partition, offset in each.moved.items()},
                "ahead": list(each.ahead),
                "waiting": list(each.waiting),
                "behind": list(each.behind),
                "problem": None if each.problem is None else error_json(each.problem),
            }
            for each in report.groups
        ],
        "offset_map": None if report.offset_map is None else str(report.offset_map),
    }
