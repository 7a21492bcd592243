"""Input of retention and erasure: expected rows by offset, and removed files.

Expected rows are the account's (docs/adr/0072); `files` only name the files that the archiver wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from catalog.account.interval import Interval
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange, clusters, hull
from catalog.ranges.spans import Cover
from catalog.registry import account_rows, file_rows
from catalog.registry.postgres import Connection

REMOVALS: Final = ("expire", "erase")
"""The commands that take records out of a table on purpose, as `Rewrite.reason` names them."""

_FILES: Final = """
WITH RECURSIVE held AS (
    SELECT coalesce(range_id, id) AS range, * FROM files
    WHERE topic_id = %(topic)s AND state = 'committed' AND path IS NOT NULL
), chosen AS (
    SELECT held.range FROM held
    JOIN unnest(%(partitions)s::integer[], %(firsts)s::bigint[], %(lasts)s::bigint[]) AS reach(p, low, high)
        ON held.partition = reach.p AND held.start_offset <= reach.high AND held.end_offset > reach.low
    UNION
    SELECT other.range FROM chosen JOIN held AS one ON one.range = chosen.range JOIN held AS other USING (path)
)
SELECT range, partition, start_offset, end_offset, path, rows
FROM held WHERE {chosen} ORDER BY partition, start_offset, part
"""
"""A file that was put together has records of several ranges: a job that takes one out has to know the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovableRange:
    """Offsets of which the table must have `expected` rows.

    `paths` are recorded files with `rows` of them. Rows may be in any file.
    """

    id: str
    partition: int
    start_offset: int
    end_offset: int
    paths: tuple[str, ...]
    rows: int
    expected: int


def ranges(
    connection: Connection, topic: TopicRow, below: Mapping[int, int] | None = None
) -> tuple[RemovableRange, ...]:
    """Offsets `below` by partition, or all, plus everything in the same files.

    Call it first in a transaction, before loading the table.
    """
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    if below is None:
        parts = clusters(account_rows.load(connection, topic), _recorded(connection, topic))
    else:
        parts = _closed(connection, topic, _joined(OffsetRange(at, 0, end - 1) for at, end in below.items() if end > 0))
    every = (_range(intervals, recorded) for intervals, recorded in parts)
    return tuple(range_ for range_ in every if range_.paths or range_.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    id: str
    offsets: OffsetRange
    paths: tuple[str, ...]
    rows: int


def _closed(
    connection: Connection, topic: TopicRow, reach: tuple[OffsetRange, ...]
) -> Iterator[tuple[list[Interval], list[_Recorded]]]:
    """Account and files at these offsets, and transitively at all that they share."""
    while True:
        recorded = _recorded(connection, topic, reach)
        further = _joined((*reach, *(range_.offsets for range_ in recorded)))
        intervals = account_rows.touched(connection, topic, further)
        further = _joined((*further, *(interval.offsets for interval in intervals)))
        if further == reach:
            return clusters(intervals, recorded)
        reach = further


def _joined(offsets: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    return Cover(offsets).ranges


def _recorded(
    connection: Connection, topic: TopicRow, reach: Iterable[OffsetRange] | None = None
) -> tuple[_Recorded, ...]:
    offsets = tuple(reach or ())
    rows = connection.execute(
        _FILES.format(chosen="true" if reach is None else "range IN (SELECT range FROM chosen)"),
        {
            "topic": topic.id,
            "partitions": [interval.partition for interval in offsets],
            "firsts": [interval.first for interval in offsets],
            "lasts": [interval.last for interval in offsets],
        },
    )
    return tuple(_recorded_range(list(parts)) for _, parts in groupby(rows, key=lambda row: row[:4]))


def now(connection: Connection) -> float:
    """Postgres' time in seconds since 1970."""
    (seconds,) = connection.execute("SELECT extract(epoch FROM now())::float8").fetchone() or (0.0,)
    return float(seconds)


def removed_files(connection: Connection, topic: TopicRow) -> dict[str, str | None]:
    """By path, the commit that removed it."""
    rows = connection.execute(
        "SELECT DISTINCT ON (path) path, replaced_by FROM files WHERE topic_id = %s AND state = 'replaced'"
        " AND path IS NOT NULL AND split_part(reason, ':', 1) = ANY(%s) ORDER BY path, id",
        (topic.id, list(REMOVALS)),
    )
    return dict(rows.fetchall())


def retired_files(connection: Connection, topic: TopicRow) -> tuple[RemovableRange, ...]:
    """Files possibly in the store with records below first offsets."""
    cursor = connection.execute(
        "SELECT min(files.id), files.partition, min(start_offset), max(end_offset), path FROM files"  # noqa: S608 - no input
        " JOIN first_offsets AS first USING (topic_id) WHERE topic_id = %s AND first.partition = files.partition"
        f" AND state = 'replaced' AND {file_rows.IS_DATA} GROUP BY path, files.partition, first.first_offset"
        " HAVING min(start_offset) < first.first_offset ORDER BY path, files.partition",
        (topic.id,),
    )
    return tuple(
        RemovableRange(
            id=range_id, partition=partition, start_offset=start, end_offset=end, paths=(path,), rows=0, expected=0
        )
        for range_id, partition, start, end, path in cursor
    )


def _recorded_range(rows: Sequence[tuple[str, int, int, int, str | None, int]]) -> _Recorded:
    range_id, partition, start, end = rows[0][:4]
    return _Recorded(
        id=range_id,
        offsets=OffsetRange.half_open(partition, start, end),
        paths=tuple(row[4] for row in rows if row[4] is not None),
        rows=sum(row[5] for row in rows),
    )


def _range(intervals: Sequence[Interval], recorded: Sequence[_Recorded]) -> RemovableRange:
    offsets = hull((*(interval.offsets for interval in intervals), *(range_.offsets for range_ in recorded)))
    return RemovableRange(
        id=recorded[0].id if recorded else f"{offsets.partition}-{offsets.first}",
        partition=offsets.partition,
        start_offset=offsets.first,
        end_offset=offsets.last + 1,
        paths=tuple(dict.fromkeys(path for range_ in recorded for path in range_.paths)),
        rows=sum(range_.rows for range_ in recorded),
        expected=sum(interval.expected for interval in intervals),
    )
