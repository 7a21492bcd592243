"""Shows the status of a topic: as a table for people, as JSON for machines."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from archiver.ingest.topic.status import PartitionStatus, TopicStatus
from archiver.observe.json_lines import error_json
from schema_mapping.errors import ContextError

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def status_table(status: TopicStatus) -> RenderableType:
    """Show a topic: a headline, a row for each partition, and below it what holds it up."""
    table = Table(title=_headline(status), title_justify="left")
    table.add_column("partition", justify="right")
    for heading in ("archived to", "staged to", "last stable", "high watermark", "lag", "oldest"):
        table.add_column(heading, justify="right")
    for each in status.partitions:
        table.add_row(
            str(each.partition),
            _number(each.archived_to),
            f"{_number(each.staged_to)} ({each.staged_files} files)" if each.staged_files else "-",
            _number(each.last_stable),
            _number(each.high_watermark),
            _number(each.lag_records),
            age(each.lag_seconds),
        )
    return Group(table, *_remarks(status))


def status_json(status: TopicStatus) -> dict[str, Any]:
    """Return everything about a topic as plain JSON values. Ages are in seconds, times in ms since 1970."""
    return {
        "topic": status.topic,
        "table": status.table,
        "lag_records": status.lag_records,
        "lag_seconds": _rounded(status.lag_seconds),
        "lost_offsets": status.lost_offsets,
        "erased_rows": status.gone.erased,
        "lost_rows": status.gone.lost,
        "retired_rows": status.gone.retired,
        "holes": [
            {name: getattr(each, name) for name in ("partition", "start_offset", "end_offset", "rows")}
            for each in status.holes
        ],
        "files": {str(state): asdict(count) for state, count in status.files.items()},
        "partitions": [
            asdict(replace(each, problem=None))
            | {"lag_seconds": _rounded(each.lag_seconds), "problem": _problem(each.problem)}
            for each in status.partitions
        ],
        "problem": _problem(status.problem),
    }


def age(seconds: float | None) -> str:
    """Format an age for people: `42 s`, `3.5 h`."""
    if seconds is None:
        return "-"
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _headline(status: TopicStatus) -> str:
    counts = ", ".join(f"{count.ranges:,} {state}" for state, count in status.files.items() if count.ranges)
    lost = f"; {status.lost_offsets:,} offsets recorded as lost" if status.lost_offsets else ""
    gone = f"; {status.gone.erased:,} rows erased by others" if status.gone.erased else ""
    gone += f"; {status.gone.lost:,} rows recorded as lost" if status.gone.lost else ""
    gone += f"; {status.gone.retired:,} rows retired" if status.gone.retired else ""
    return f"{status.topic} in {status.table}: {status.lag_records:,} behind; files: {counts or 'none'}{lost}{gone}"


def _remarks(status: TopicStatus) -> list[Text]:
    remarks = [Text(f"{type(error).__name__}: {error}", style="bold red") for error in status.problems]
    remarks += [
        Text(f"partition {each.partition}: {each.rows:,} rows of {each.span} are missing from the table")
        for each in status.holes
    ]
    return remarks + [Text(line) for each in status.partitions for line in _transactions(each)]


def _transactions(status: PartitionStatus) -> list[str]:
    return [
        f"partition {status.partition}: held back by an open transaction from {each.first_offset:,} on, of producer "
        f"{each.producer_id} epoch {each.producer_epoch} ({each.transactional_id or 'its id is not visible'})"
        for each in status.open_transactions
    ]


def _problem(error: ContextError | None) -> dict[str, Any] | None:
    return None if error is None else error_json(error)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
