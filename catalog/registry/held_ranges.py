"""Which ranges of offsets have rows in given files, without the files' descriptions: there may be many files.

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.model import TopicRow
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRange:
    """A range with rows in a file.

    It is `whole` if the file has all of its rows, and the table must have all of these.
    """

    path: str
    partition: int
    start_offset: int
    end_offset: int
    is_whole: bool


def held_ranges(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> tuple[HeldRange, ...]:
    """The ranges with rows in these files, by partition and offset. They are in the table or wait for a commit."""
    found = connection.execute(
        "SELECT path, partition, start_offset, end_offset, parts = 1 AND coalesce(expected_rows, rows) = rows"
        " AND erased_rows + lost_rows + retired_rows = 0 FROM files"
        " WHERE topic_id = %s AND path = ANY(%s) AND state IN ('uploaded', 'committed')"
        " ORDER BY partition, start_offset, path",
        (topic.id, list(paths)),
    )
    return tuple(
        HeldRange(path=path, partition=partition, start_offset=start, end_offset=end, is_whole=whole)
        for path, partition, start, end, whole in found
    )
