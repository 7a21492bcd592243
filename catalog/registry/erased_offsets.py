"""Offsets of records that were erased, and the erasures they belong to. Nothing brings such a record back.

An erasure is open until no object of the store has its records any more. Functions take a connection inside a
transaction. They are safe to call again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.ranges.spans import joined
from catalog.registry.postgres import Connection


def load(connection: Connection, topic: TopicRow) -> dict[int, list[tuple[int, int]]]:
    """The erased offsets as joined spans, by partition."""
    found = connection.execute(
        "SELECT partition, start_offset, end_offset FROM erased_offsets WHERE topic_id = %s ORDER BY 1, 2", (topic.id,)
    )
    spans: dict[int, list[tuple[int, int]]] = {}
    for partition, start, end in found:
        spans.setdefault(partition, []).append((start, end))
    return {partition: joined(those) for partition, those in spans.items()}


def add(connection: Connection, topic: TopicRow, spans: Iterable[tuple[int, int, int]], *, commit_id: str) -> None:
    """Note offsets (partition, start, end) that a commit erased."""
    rows = [(topic.id, partition, start, end, commit_id) for partition, start, end in spans]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO erased_offsets (topic_id, partition, start_offset, end_offset, commit_id)"
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (topic_id, partition, start_offset) DO UPDATE"
                " SET end_offset = greatest(erased_offsets.end_offset, excluded.end_offset)",
                rows,
            )


def files(connection: Connection, topic: TopicRow) -> dict[str, str | None]:
    """Files that aren't in the table and may have erased records. Paths, each with the commit that took it out."""
    found = connection.execute(
        "SELECT DISTINCT ON (path) path, replaced_by FROM files WHERE topic_id = %(topic)s"
        " AND state IN ('replaced', 'rejected') AND path IS NOT NULL AND EXISTS (SELECT FROM erased_offsets AS erased"
        "   WHERE erased.topic_id = files.topic_id AND erased.partition = files.partition"
        "   AND erased.start_offset < files.end_offset AND erased.end_offset > files.start_offset) ORDER BY path, id",
        {"topic": topic.id},
    )
    return dict(found.fetchall())


_STALE = """
INSERT INTO files (id, topic_id, partition, start_offset, end_offset, schema_version, leader_epoch, state, path, rows,
                   size_bytes, raw_values, created_ms, committed_at, reason)
SELECT 'stale-' || %(partition)s || '-' || %(path)s, %(topic)s, %(partition)s, %(start)s, %(end)s, 0, -1, 'replaced',
       %(path)s, 0, 0, 0, 0, now(), 'erase: it has erased records'
WHERE NOT EXISTS (SELECT FROM files WHERE topic_id = %(topic)s AND path = %(path)s) ON CONFLICT DO NOTHING
"""


def note_files(connection: Connection, topic: TopicRow, stale: Iterable[tuple[str, int, int, int]]) -> None:
    """Note files that the table has no more and may have erased records: path, partition, start and end of offsets.

    Those that the registry knows stay as they are.
    """
    for path, partition, start, end in stale:
        connection.execute(
            _STALE, {"topic": topic.id, "path": path, "partition": partition, "start": start, "end": end}
        )


def begin_erasure(connection: Connection, topic: TopicRow, erasure_id: str, value: Mapping[str, Any]) -> None:
    """Keep an erasure as it is now. It stays open."""
    connection.execute(
        "INSERT INTO erasures (id, topic_id, value) VALUES (%s, %s, %s)"
        " ON CONFLICT (id) DO UPDATE SET value = excluded.value",
        (erasure_id, topic.id, Jsonb(dict(value))),
    )


def finish_erasures(connection: Connection, topic: TopicRow, erasure_ids: Iterable[str]) -> None:
    """Note that no object has the records of these erasures any more."""
    connection.execute(
        "UPDATE erasures SET finished_at = now() WHERE topic_id = %s AND id = ANY(%s) AND finished_at IS NULL",
        (topic.id, list(erasure_ids)),
    )


def open_erasures(connection: Connection, topic: TopicRow) -> dict[str, dict[str, Any]]:
    """The erasures of which some object may still have records, by id."""
    found = connection.execute(
        "SELECT id, value FROM erasures WHERE topic_id = %s AND finished_at IS NULL ORDER BY id", (topic.id,)
    )
    return dict(found.fetchall())
