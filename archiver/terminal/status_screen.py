"""The status of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from archiver.terminal.amounts import age, clock_time, counted, size
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import error_or_none
from archiver.terminal.listing import NOTHING, Column, Listing
from archiver.terminal.owner_words import erasure_remark
from archiver.terminal.schema_words import doubt_remark, fit_remarks
from archiver.topics.continuity import UNPROVEN_EPOCHS
from archiver.topics.state import PartitionStatus, TopicStatus
from catalog.model import FileState
from schema_mapping.errors import ContextError

SHOWN: Final = 8
"""How many topics with the same problem are named."""
MANY_FILES: Final = 100
TINY_BYTES: Final = 4 << 20
"""Engines take longer to open a file of less than this than to read it."""


def status_screen(found: Sequence[TopicStatus], *, partitions: bool = False) -> RenderableType:
    if partitions:
        tables = [part for topic in found for part in (Text(""), status_table(topic))]
        return Group(*tables[1:])
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="records behind"),
        Column(heading="oldest", alone="oldest {} old"),
        Column(heading="archived", alone="{} archived", is_optional=True),
        Column(heading="size", alone="{} stored", is_optional=True),
        Column(heading="state", alone="{}", kind="text"),
    )
    seen = [topic for topic in found if topic.is_seen]
    for topic in seen:
        committed = topic.files.get(FileState.COMMITTED)
        listing.add(
            Text(topic.topic, style="bold"),
            "unknown" if topic.lag_records is None else f"{topic.lag_records:,}",
            age(topic.lag_seconds),
            f"{committed.rows:,}" if committed else NOTHING,
            size(committed.size_bytes) if committed else NOTHING,
            _state(topic),
        )
    return Group(*([listing] if seen else []), *_shared_problems(found), *_topic_remarks(found))


def _shared_problems(found: Sequence[TopicStatus]) -> list[Text]:
    lines = []
    for error, topics in _shared(found).values():
        more = f" and {len(topics) - SHOWN:,} more" if len(topics) > SHOWN else ""
        head = f"{len(topics):,} topics ({', '.join(topics[:SHOWN])}{more}): "
        lines.append(Text(head).append_text(error_text(error)))
    return lines


def _shared(found: Sequence[TopicStatus]) -> dict[tuple[str, str], tuple[ContextError, list[str]]]:
    problems: dict[tuple[str, str], tuple[ContextError, list[str]]] = {}
    for status in found:
        if status.problem is not None:
            key = (type(status.problem).__name__, status.problem.message)
            problems.setdefault(key, (status.problem, []))[1].append(status.topic)
    return {key: (error, topics) for key, (error, topics) in problems.items() if len(topics) > 1}


def _topic_remarks(found: Sequence[TopicStatus]) -> list[Text]:
    shared = _shared(found)
    lines = []
    for status in found:
        problem = status.problem
        is_shared = problem is not None and (type(problem).__name__, problem.message) in shared
        remarks = _remarks(replace(status, problem=None) if is_shared else status)
        lines += [Text(f"{status.topic}: ").append_text(line) for line in remarks]
    return lines


def looked_screen(
    found: Sequence[TopicStatus], error: ContextError | None, *, partitions: bool = False
) -> RenderableType:
    if error is None:
        return status_screen(found, partitions=partitions)
    archived = Text("Shown is what is archived; how far behind it is isn't known.\n", style="dim")
    parts = [status_screen(found, partitions=partitions), Text(""), archived] if found else []
    return Group(*parts, error_text(error))


def watch_screen(
    found: Sequence[TopicStatus], error: ContextError | None, *, partitions: bool = False
) -> RenderableType:
    """Topics with problems come first."""
    time = Text(clock_time(), style="dim")
    ordered = sorted(found, key=lambda topic: (not topic.problems, -(topic.lag_records or 0), topic.topic))
    return Group(time, looked_screen(ordered, error, partitions=partitions))


def _state(status: TopicStatus) -> Text:
    if status.problems:
        return Text(", ".join(dict.fromkeys(type(error).__name__ for error in status.problems)), style="bold red")
    if status.doubts:
        return Text("schema in doubt", style="yellow")
    if status.lag_records is None:
        return Text("unknown", style="yellow")
    if not status.lag_records and status.gone.retired and not _committed(status):
        return Text("all retired")
    return Text("up to date" if not status.lag_records else "behind")


def _committed(status: TopicStatus) -> int:
    committed = status.files.get(FileState.COMMITTED)
    return committed.rows if committed else 0


def status_table(status: TopicStatus) -> RenderableType:
    if not status.is_seen:
        return Group(*(Text(f"{status.topic}: ").append_text(line) for line in _remarks(status)))
    listing = Listing(
        Column(heading="partition", alone="partition {}", kind="name"),
        Column(heading="begins at", is_optional=True),
        Column(heading="archived to"),
        Column(heading="staged to"),
        Column(heading="last stable", is_optional=True),
        Column(heading="high watermark", is_optional=True),
        Column(heading="lag"),
        Column(heading="oldest", alone="oldest {} old"),
    )
    for partition in status.partitions:
        listing.add(
            str(partition.partition),
            _number(partition.first_offset),
            _number(partition.archived_to),
            f"{_number(partition.staged_to)} ({counted(partition.staged_files, 'file')})"
            if partition.staged_files
            else NOTHING,
            _number(partition.last_stable),
            _number(partition.high_watermark),
            _number(partition.lag_records),
            age(partition.lag_seconds),
        )
    return Group(*_headlines(status), listing, *_remarks(status))


def status_json(status: TopicStatus) -> dict[str, Any]:
    """Ages are in seconds, times in ms since 1970."""
    return {
        "topic": status.topic,
        "table": status.table,
        "lag_records": status.lag_records,
        "lag_seconds": _rounded(status.lag_seconds),
        "lost_offsets": status.lost_offsets,
        "erased_records": status.gone.erased,
        "lost_records": status.gone.lost,
        "retired_records": status.gone.retired,
        "holds": status.holds,
        "holes": [
            {name: getattr(hole, name) for name in ("partition", "start_offset", "end_offset", "rows")}
            for hole in status.holes
        ],
        "altered": [
            {name: getattr(range_, name) for name in ("partition", "start_offset", "end_offset", "rows")}
            for range_ in status.altered
        ],
        "not_compared_records": status.uncompared_rows,
        "unseen_before_snapshot": status.unseen_before,
        "files": {str(state): asdict(count) for state, count in status.files.items()},
        "partitions": [
            asdict(replace(partition, problem=None))
            | {"lag_seconds": _rounded(partition.lag_seconds), "problem": error_or_none(partition.problem)}
            for partition in status.partitions
        ],
        "recognition": {part: asdict(fit) for part, fit in status.recognition.parts.items()},
        "uncounted_records": status.uncounted_rows,
        "open_erasures": [
            {name: getattr(erasure, name) for name in ("id", "is_searched", "settings", "snapshots")}
            for erasure in status.erasures
        ],
        "owner_remarks": list(status.owner_remarks),
        "hidden_records": list(status.hidden_rows),
        "doubts": {part: doubt.name.lower() for part, doubt in status.doubts.items()},
        "problem": error_or_none(status.problem),
        "needs_consent": error_or_none(status.consent),
        "schema_change_waits": error_or_none(status.waiting_change),
        "chores": [
            asdict(chore) | {name: _timestamp(getattr(chore, name)) for name in ("ended_at", "failed_at")}
            for chore in status.chores
        ],
        "log": None
        if status.log is None
        else {
            "place": status.log.folder,
            "drained": status.log.drained,
            "reported_at": _timestamp(status.log.reported_at),
        },
    }


def _headlines(status: TopicStatus) -> list[Text]:
    counts = ", ".join(f"{count.ranges:,} {state}" for state, count in status.files.items() if count.ranges)
    gone = (
        (status.lost_offsets, "offset", "recorded as lost"),
        (status.gone.erased, "row", "erased"),
        (status.gone.lost, "row", "recorded as lost"),
        (status.gone.retired, "row", "retired"),
        (status.holds, "legal hold", "in force"),
    )
    lag = "unknown how far" if status.lag_records is None else counted(status.lag_records, "record")
    behind = f": {lag} behind; files: {counts or 'none'}"
    losses = [f"{counted(number, noun)} {fate}" for number, noun, fate in gone if number]
    head = Text.assemble((status.topic, "bold"), f" in {status.table}", behind)
    return [head, Text("; ".join(losses), style="yellow")] if losses else [head]


def _remarks(status: TopicStatus) -> list[Text]:
    remarks = [error_text(error) for error in status.problems]
    remarks += [
        Text(
            f"partition {hole.partition}: {counted(hole.rows, 'row')} of {hole.span} "
            f"{'is' if hole.rows == 1 else 'are'} missing from the table"
        )
        for hole in status.holes
    ]
    remarks += [
        Text(
            f"partition {range_.partition}: {range_.span} doesn't hold the archived records any more: others changed it"
        )
        for range_ in status.altered
    ]
    if status.uncompared_rows:
        remarks.append(
            Text(
                f"{counted(status.uncompared_rows, 'record')} that others may have changed "
                f"{'is' if status.uncompared_rows == 1 else 'are'} not compared yet: `archiver archive` goes on",
                style="yellow",
            )
        )
    if status.unseen_before is not None:
        remarks.append(
            Text(
                f"changes that other engines made before snapshot {status.unseen_before} weren't checked: older"
                f" snapshots have expired. `archiver verify {status.topic}` compares every record with what was"
                " archived",
                style="yellow",
            )
        )
    remarks += [
        Text(doubt_remark(status.topic, part, status.recognition.parts[part], doubt), style="yellow")
        for part, doubt in status.doubts.items()
    ]
    if any(not partition.proves_epochs for partition in status.partitions):
        remarks.append(Text(UNPROVEN_EPOCHS % status.topic, style="yellow"))
    remarks += [Text(erasure_remark(status.topic, erasure), style="yellow") for erasure in status.erasures]
    remarks += [Text(line, style="yellow") for line in (*status.owner_remarks, *status.hidden_rows)]
    remarks += [
        Text(
            f"{chore.chore} failed {'once' if chore.failures == 1 else f'{chore.failures:,} times'}, last at"
            f" {_timestamp(chore.failed_at)}; archiving continues, and it is tried again: {chore.error}",
            style="yellow",
        )
        for chore in status.chores
        if chore.failures
    ]
    remarks += [Text(line) for line in fit_remarks(status.recognition)]
    if status.log is not None and status.lag_records and not status.log.drained:
        remarks.append(
            Text(
                f"{counted(status.lag_records, 'acknowledged record')} {'is' if status.lag_records == 1 else 'are'} not"
                f" in the table yet, and in the write-ahead log {status.log.folder} alone (as of"
                f" {_timestamp(status.log.reported_at)})",
                style="yellow",
            )
        )
    remarks += _small_files(status)
    return remarks + [Text(line) for partition in status.partitions for line in _transactions(partition)]


def _small_files(status: TopicStatus) -> list[Text]:
    total = status.files.get(FileState.COMMITTED)
    if total is None or not total.ranges or total.files <= total.ranges:
        return []
    average = total.size_bytes // total.files
    text = (
        f"{counted(total.files, 'file')} in {counted(total.ranges, 'range')}: {total.files / total.ranges:.1f} a range,"
        f" of {size(average)} on average"
    )
    if total.files < MANY_FILES or average >= TINY_BYTES:
        return [Text(text)]
    advice = "; fewer partitions, or a larger min_file_size and max_lag, make larger ones"
    return [Text(text + advice, style="yellow")]


def _transactions(status: PartitionStatus) -> list[str]:
    return [
        f"partition {status.partition}: held back by an open transaction from {transaction.first_offset:,} on, of "
        f"producer {transaction.producer_id} epoch {transaction.producer_epoch} "
        f"({transaction.transactional_id or 'its id is not visible'})"
        for transaction in status.open_transactions
    ]


def _timestamp(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat(timespec="seconds")


def _number(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
