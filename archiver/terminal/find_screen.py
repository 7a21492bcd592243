"""Shows a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from rich.text import Text

from archiver.find.report import REASONS, FindReport
from archiver.find.search import Searched
from archiver.records.listed_files import time_text
from archiver.replay.jsonl import to_json
from archiver.storage.row_columns import NO_TIMESTAMP
from archiver.terminal.amounts import counted, size
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import NOTHING, Column, Listing

_LONGEST: Final = 200
"""Characters of a key or value in a table. JSON lines and Arrow have them whole."""


class FindScreen(Bars):
    def __init__(self, console: TextConsole) -> None:
        super().__init__(console, unit="read")

    def __call__(self, event: Searched) -> None:
        self.show(f"find: {counted(event.records, 'record')}", done=event.done, total=event.total)


def records_listing(topic: str, records: pa.RecordBatch) -> Listing:
    """`records` have the columns of DECODED."""
    listing = Listing(
        Column(heading="topic", alone="{}", kind="name"),
        Column(heading="partition", alone="partition {}", kind="name"),
        Column(heading="offset", alone="offset {}", kind="name"),
        Column(heading="time", alone="{}", kind="text"),
        Column(heading="key", alone="key {}", kind="text"),
        Column(heading="value", alone="{}", kind="text"),
        Column(heading="headers", alone="headers {}", kind="text"),
    )
    for record in records.to_pylist():
        timestamp = record["timestamp"]
        headers = ", ".join(f"{_text(it['key'])}={_text(it['value'])}" for it in record["headers"])
        listing.add(
            topic,
            str(record["partition"]),
            str(record["offset"]),
            NOTHING if timestamp == NO_TIMESTAMP else time_text(timestamp),
            _shown(record["key"], record["shown_key"]),
            _shown(record["value"], record["shown_value"]),
            _cut(headers) or NOTHING,
        )
    return listing


def explained(report: FindReport) -> Iterator[Text]:
    opened = f"{counted(report.files_opened, 'file')} opened"
    yield Text(f"manifests: {counted(report.files, 'file')}; ruled out {_reasons(report.files_out)}; {opened}")
    if report.registry_error is not None:
        yield Text(f"registry: no file was ruled out by its values: {report.registry_error}")
    if report.index_runs:
        used = f"{counted(report.index_runs, 'run')}, {counted(report.index_leaves, 'leaf', 'leaves')} read"
        reads = f"{counted(report.index_reads.requests, 'request')}, {size(report.index_reads.size_bytes)}"
        yield Text(f"index: {used} with {reads}")
    if report.index_error is not None:
        yield Text(f"index: files of some runs were not ruled out: {report.index_error}")
    read = f"{counted(report.blocks_read, 'row group')} read"
    yield Text(f"files: {counted(report.blocks, 'row group')}; ruled out {_reasons(report.blocks_out)}; {read}")
    yield Text(
        f"rows: {report.rows_judged:,} judged, {report.matches:,} matched, {report.point_rows:,} read by position,"
        f" {report.unjudged:,} can't be judged"
    )
    yield Text(f"reads: {counted(report.reads.requests, 'request')}, {size(report.reads.size_bytes)}")


def report_json(report: FindReport) -> dict[str, Any]:
    return {
        "topics": report.topics,
        "files": report.files,
        "files_ruled_out": _counts(report.files_out),
        "registry_error": report.registry_error,
        "index_runs": report.index_runs,
        "index_leaves": report.index_leaves,
        "index_requests": report.index_reads.requests,
        "index_size_bytes": report.index_reads.size_bytes,
        "index_error": report.index_error,
        "files_opened": report.files_opened,
        "row_groups": report.blocks,
        "row_groups_ruled_out": _counts(report.blocks_out),
        "row_groups_read": report.blocks_read,
        "rows_judged": report.rows_judged,
        "matches": report.matches,
        "point_rows": report.point_rows,
        "unjudged_records": report.unjudged,
        "requests": report.reads.requests,
        "size_bytes": report.reads.size_bytes,
    }


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: counts[reason] for reason in _tried(counts)}


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[reason]:,} by {reason}" for reason in _tried(counts)) or "none"


def _tried(counts: Mapping[str, int]) -> Iterable[str]:
    return (reason for reason in REASONS if counts.get(reason))


def _shown(data: bytes | None, shown: Mapping[str, str | None] | None) -> str:
    text = shown["json"] if shown else None
    return _cut(text) if text is not None else _cut(_text(data))


def _text(data: bytes | None) -> str:
    match to_json(data):
        case None:
            return NOTHING
        case str(text):
            return text
        case _:
            return f"0x{(data or b'').hex()}"


def _cut(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
