"""Rows of `files` for files that left the table, from a rebuild or of other engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ulid import ULID

from catalog.model import FileState, TopicRow
from catalog.ranges.replaced_files import ReplacedFile
from catalog.registry import file_rows
from catalog.registry.postgres import Connection

_RESTORE: Final = """
INSERT INTO files (id, topic_id, part, parts, partition, start_offset, end_offset, schema_version, leader_epoch, state,
                   path, rows, size_bytes, raw_values, min_timestamp, max_timestamp, digest, digest_algorithm, file,
                   created_ms, reason, commit_id, committed_at, erased_rows, lost_rows, retired_rows, recognition,
                   expected_rows, replaced_by)
SELECT CASE WHEN EXISTS (SELECT FROM files WHERE id = %(id)s) THEN %(other_id)s ELSE %(id)s END, %(topic_id)s, 0, 1,
       %(partition)s, %(start_offset)s, %(end_offset)s, %(schema_version)s, %(leader_epoch)s, %(state)s, %(path)s,
       %(rows)s, %(size_bytes)s, %(raw_values)s, %(min_timestamp)s, %(max_timestamp)s, %(digest)s, %(digest_algorithm)s,
       %(file)s, %(created_ms)s, %(reason)s, %(commit_id)s, coalesce(to_timestamp(%(committed_ms)s / 1000.0), now()),
       %(erased)s, %(lost_rows)s, %(retired)s, %(recognition)s, nullif(%(expected)s::bigint, %(rows)s), %(replaced_by)s
WHERE NOT EXISTS (
    SELECT FROM files WHERE topic_id = %(topic_id)s AND path = %(path)s AND partition = %(partition)s
    AND start_offset < %(end_offset)s AND end_offset > %(start_offset)s)
ON CONFLICT DO NOTHING
"""


def restore(connection: Connection, topic: TopicRow, replaced: Iterable[ReplacedFile]) -> int:
    """Existing rows stay. Returns the number of added ones."""
    rows = list(_rows(topic, replaced))
    if not rows:
        return 0
    with connection.cursor() as cursor:
        cursor.executemany(_RESTORE, rows)
        return max(0, cursor.rowcount)


def _rows(topic: TopicRow, replaced: Iterable[ReplacedFile]) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for file in replaced:
        (row,) = file_rows.rows_of(topic, file.range, FileState.REPLACED, file.reason)
        counted = file_rows.COUNTED_BEFORE if file.path in seen else {}
        seen.add(file.path)
        yield (
            row
            | counted
            | {
                "path": file.path,
                "other_id": file.other_id,
                "replaced_by": file.replaced_by,
                "committed_ms": _time_ms(row["commit_id"]),
            }
        )


def _time_ms(commit_id: str | None) -> int | None:
    try:
        return None if commit_id is None else ULID.from_str(commit_id).milliseconds
    except ValueError:
        return None
