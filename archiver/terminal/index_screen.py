"""Shows indexes and their builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.text import Text

from archiver.index.builder import BuildReport
from archiver.terminal.amounts import counted, size
from archiver.terminal.json_lines import error_or_none
from archiver.upkeep.indexing import ColumnIndex, TopicIndexes


def build_lines(topic: str, report: BuildReport) -> Iterator[str]:
    parts = [f"{topic}: {counted(report.files, 'file')} indexed"]
    if report.runs:
        parts.append(
            f"{counted(report.entries, 'posting')} in {counted(report.runs, 'run')}, {size(report.size_bytes)}"
        )
    if report.merged:
        parts.append(counted(report.merged, "merge"))
    if report.left:
        parts.append(f"{counted(report.left, 'file')} left")
    yield "; ".join(parts)
    yield from failures_text(topic, report)


def failures_text(topic: str, report: BuildReport) -> Iterator[str]:
    """Searches read these files."""
    yield from (f"{topic}: {error}" for error in report.failures)


def build_json(topic: str, report: BuildReport) -> dict[str, Any]:
    return {
        "topic": topic,
        "files": report.files,
        "runs": report.runs,
        "postings": report.entries,
        "size_bytes": report.size_bytes,
        "merges": report.merged,
        "files_left": report.left,
        "failures": failures_json(report),
    }


def failures_json(report: BuildReport) -> list[Any]:
    return [error_or_none(error) for error in report.failures]


def status_json(indexes: TopicIndexes) -> dict[str, Any]:
    return {
        "topic": indexes.topic,
        "columns": [asdict(column) for column in indexes.columns],
        "runs_to_delete": indexes.waiting,
        "files_too_large": indexes.too_large,
    }


def status_screen(indexes: TopicIndexes) -> Text:
    lines = [f"{indexes.topic}: {_line(column)}" for column in indexes.columns]
    if indexes.waiting:
        lines.append(f"{indexes.topic}: {counted(indexes.waiting, 'dropped run')} to be deleted")
    if indexes.too_large:
        lines.append(
            f"{indexes.topic}: {counted(indexes.too_large, 'file')} took longer than `archiver archive` had time:"
            " `archiver index build` indexes all"
        )
    return Text("\n".join(lines))


def _line(column: ColumnIndex) -> str:
    notes = [
        f"{column.name} ({column.kind})",
        f"{column.files:,} of {counted(column.all_files, 'file')}",
        f"{counted(column.entries, 'posting')} in {counted(column.runs, 'run')}, {size(column.size_bytes)}",
    ]
    if column.is_stale:
        notes.append("built again, since the schema changed")
    if not column.is_configured:
        notes.append("not in `index` any more: `archiver index drop` deletes it")
    return "; ".join(notes)
