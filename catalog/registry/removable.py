"""What retention and erasure ask of the registry: ranges with their files, and files that a removal took out.

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from catalog.model import TopicRow
from catalog.registry.postgres import Connection

REMOVALS: Final = ("expire", "erase")
"""The commands that take records out of a table on purpose, as `Rewrite.reason` names them."""

_RANGES: Final = """
WITH RECURSIVE held AS (
    SELECT coalesce(range_id, id) AS range, * FROM files
    WHERE topic_id = %(topic)s AND state = 'committed' AND (path IS NOT NULL OR coalesce(expected_rows, rows) > 0)
), chosen AS (
    SELECT held.range FROM held JOIN unnest(%(partitions)s::integer[], %(offsets)s::bigint[]) AS cut(p, o)
        ON held.partition = cut.p AND held.start_offset < cut.o
    UNION
    SELECT other.range FROM chosen JOIN held AS one ON one.range = chosen.range JOIN held AS other USING (path)
)
SELECT range, partition, start_offset, end_offset, path, rows, coalesce(expected_rows, rows)
FROM held WHERE {chosen} ORDER BY partition, start_offset, part
"""
"""A file that was put together has records of several ranges: whoever takes one out has to know of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovableRange:
    """A committed range: its offsets, its files, how many rows they have of it, and how many the table must have."""

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
    """The committed ranges that have files or rows, by partition and offset.

    With `below`, those of its partitions that start below the offset given there, and all that have records in files
    of these. Ask before you load the table: then the table has every range of the answer.
    """
    wanted = sorted((below or {}).items())
    found = connection.execute(
        _RANGES.format(chosen="true" if below is None else "range IN (SELECT range FROM chosen)"),
        {
            "topic": topic.id,
            "partitions": [each for each, _ in wanted],
            "offsets": [offset for _, offset in wanted],
        },
    )
    return tuple(_range(list(rows)) for _, rows in groupby(found, key=lambda row: row[:4]))


def now(connection: Connection) -> float:
    """Postgres' time, in seconds since 1970."""
    (found,) = connection.execute("SELECT extract(epoch FROM now())::float8").fetchone() or (0.0,)
    return float(found)


def removed_files(connection: Connection, topic: TopicRow) -> dict[str, str | None]:
    """The files that a removal of records took out of the table and that may still be in the store.

    Paths, each with the commit that took it out.
    """
    found = connection.execute(
        "SELECT DISTINCT ON (path) path, replaced_by FROM files WHERE topic_id = %s AND state = 'replaced'"
        " AND path IS NOT NULL AND split_part(reason, ':', 1) = ANY(%s) ORDER BY path, id",
        (topic.id, list(REMOVALS)),
    )
    return dict(found.fetchall())


def retired_files(connection: Connection, topic: TopicRow) -> tuple[RemovableRange, ...]:
    """The files that may still be in the store with records below first offsets, each as a range of its own.

    Of a file with several ranges of a partition it reaches from the first to the last of them. Whatever took them out
    of the table: a file that was put together with others is retired with these.
    """
    found = connection.execute(
        "SELECT min(files.id), files.partition, min(start_offset), max(end_offset), path FROM files"
        " JOIN first_offsets AS first USING (topic_id) WHERE topic_id = %s AND first.partition = files.partition"
        " AND state = 'replaced' AND path IS NOT NULL GROUP BY path, files.partition, first.first_offset"
        " HAVING min(start_offset) < first.first_offset ORDER BY path, files.partition",
        (topic.id,),
    )
    return tuple(
        RemovableRange(
            id=each, partition=partition, start_offset=start, end_offset=end, paths=(path,), rows=0, expected=0
        )
        for each, partition, start, end, path in found
    )


def _range(rows: Sequence[tuple[str, int, int, int, str | None, int, int]]) -> RemovableRange:
    range_id, partition, start, end = rows[0][:4]
    return RemovableRange(
        id=range_id,
        partition=partition,
        start_offset=start,
        end_offset=end,
        paths=tuple(row[4] for row in rows if row[4] is not None),
        rows=sum(row[5] for row in rows),
        expected=sum(row[6] for row in rows),
    )
