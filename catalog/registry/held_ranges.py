"""The ranges with rows in given files, without file descriptions: there may be many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catalog.model import TopicRow
from catalog.registry.postgres import Connection

_HELD: Final = """
SELECT path, partition, start_offset, end_offset, parts = 1 AND EXISTS (
    SELECT FROM account WHERE topic_id = files.topic_id AND partition = files.partition
    AND first_offset = start_offset AND last_offset = end_offset - 1 AND expected_rows = rows AND NOT is_unknown
    AND erased_rows + removed_rows + lost_rows + retired_rows = 0)
FROM files WHERE topic_id = %(topic)s AND path = ANY(%(paths)s) AND state IN ('uploaded', 'committed')
ORDER BY partition, start_offset, path
"""
"""Neighbours that are whole are merged. Unknown offsets keep their borders: they would make known ones unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRange:
    """`is_whole` if the file has all of the range's rows, all expected by the account, with no record gone."""

    path: str
    partition: int
    start_offset: int
    end_offset: int
    is_whole: bool


def held_ranges(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> tuple[HeldRange, ...]:
    """Committed or waiting."""
    rows = connection.execute(_HELD, {"topic": topic.id, "paths": list(paths)})
    return tuple(
        HeldRange(path=path, partition=partition, start_offset=start, end_offset=end, is_whole=whole)
        for path, partition, start, end, whole in rows
    )
