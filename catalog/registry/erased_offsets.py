"""Erased offsets and their erasures.

An erasure is open until no object has its records. A search has ended with `SEARCHED_MS`. Idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.ranges.spans import joined
from catalog.registry.postgres import Connection
from catalog.registry.run_clock import now_ms

CONDITION: Final = "condition_hash"
"""Key of an erasure that has a condition. One without goes by the offsets that are known as erased."""
SEARCHED_MS: Final = "searched_ms"
"""Key of the time when no file of the table had such records any more, by Postgres' clock."""
UNJUDGED: Final = "unjudged_records"
"""Key of how many records stayed because nothing told whether the condition of an erasure holds for them."""
WAITS_FOR: Final = "waits_for"
"""Key of what keeps files with records of an erasure: `snapshots`, kept by `settings` of the table's owner."""
SUPERSEDED_BY: Final = "superseded_by"
"""Key of an erasure whose search ended while that of this one had not."""


def load(connection: Connection, topic: TopicRow) -> dict[int, list[tuple[int, int]]]:
    rows = connection.execute(
        "SELECT partition, start_offset, end_offset FROM erased_offsets WHERE topic_id = %s ORDER BY 1, 2", (topic.id,)
    )
    spans: dict[int, list[tuple[int, int]]] = {}
    for partition, start, end in rows:
        spans.setdefault(partition, []).append((start, end))
    return {partition: joined(ranges) for partition, ranges in spans.items()}


def add(connection: Connection, topic: TopicRow, spans: Iterable[tuple[int, int, int]], *, commit_id: str) -> None:
    """Spans are (partition, start, end). Offsets that are erased again are noted as of now: their rows were back."""
    rows = [(topic.id, partition, start, end, commit_id) for partition, start, end in spans]
    if rows:
        noted_ms = now_ms(connection, topic)
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO erased_offsets (topic_id, partition, start_offset, end_offset, commit_id, noted_ms)"
                " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (topic_id, partition, start_offset) DO UPDATE"
                " SET end_offset = greatest(erased_offsets.end_offset, excluded.end_offset),"
                " noted_ms = greatest(erased_offsets.noted_ms, excluded.noted_ms)",
                [(*row, noted_ms) for row in rows],
            )


def files(connection: Connection, topic: TopicRow) -> dict[str, str | None]:
    """Paths outside the table with possibly erased records, and the commit that removed each."""
    rows = connection.execute(
        "SELECT DISTINCT ON (path) path, replaced_by FROM files WHERE topic_id = %(topic)s"
        " AND state IN ('replaced', 'rejected') AND path IS NOT NULL AND EXISTS (SELECT FROM erased_offsets AS erased"
        "   WHERE erased.topic_id = files.topic_id AND erased.partition = files.partition"
        "   AND erased.start_offset < files.end_offset AND erased.end_offset > files.start_offset) ORDER BY path, id",
        {"topic": topic.id},
    )
    return dict(rows.fetchall())


_STALE = """
INSERT INTO files (id, topic_id, partition, start_offset, end_offset, schema_version, leader_epoch, state, path, rows,
                   size_bytes, raw_values, created_ms, committed_at, reason)
SELECT 'stale-' || %(partition)s || '-' || %(path)s, %(topic)s, %(partition)s, %(start)s, %(end)s, 0, -1, 'replaced',
       %(path)s, 0, 0, 0, 0, now(), 'erase: it has erased records'
WHERE NOT EXISTS (SELECT FROM files WHERE topic_id = %(topic)s AND path = %(path)s) ON CONFLICT DO NOTHING
"""


def note_files(connection: Connection, topic: TopicRow, stale: Iterable[tuple[str, int, int, int]]) -> None:
    """`stale` are path, partition, start and end. Known files stay."""
    for path, partition, start, end in stale:
        connection.execute(
            _STALE, {"topic": topic.id, "path": path, "partition": partition, "start": start, "end": end}
        )


def begin_erasure(connection: Connection, topic: TopicRow, erasure_id: str, value: Mapping[str, Any]) -> None:
    connection.execute(
        "INSERT INTO erasures (id, topic_id, value) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING",
        (erasure_id, topic.id, Jsonb(dict(value))),
    )


def end_search(
    connection: Connection, topic: TopicRow, erasure_id: str, value: Mapping[str, Any], searched_ms: int
) -> bool:
    """A search found all records, and these left the table. Only for the run that searched.

    Supersedes open ones without an ended search. Returns whether it is kept: only if it committed something or
    superseded one.
    """
    at, open_ = Jsonb({**value, SEARCHED_MS: searched_ms}), {"topic": topic.id, "id": erasure_id}
    superseded = connection.execute(
        "UPDATE erasures SET value = value || %(by)s WHERE topic_id = %(topic)s AND id <> %(id)s"
        " AND finished_at IS NULL AND value ? %(condition)s AND NOT value ? %(searched)s",
        {**open_, "by": Jsonb({SUPERSEDED_BY: erasure_id}), "condition": CONDITION, "searched": SEARCHED_MS},
    ).rowcount
    if superseded:
        begin_erasure(connection, topic, erasure_id, value)
    # Another run may have closed it as given up, while this one was silent for long.
    kept = connection.execute(
        "UPDATE erasures SET value = value || %(at)s, finished_at = NULL WHERE topic_id = %(topic)s AND id = %(id)s",
        {**open_, "at": at},
    )
    return bool(kept.rowcount)


def note_searched(connection: Connection, topic: TopicRow, erasure_ids: Iterable[str], searched_ms: int) -> None:
    """Record that no table file has erased offsets, for erasures whose search has ended."""
    connection.execute(
        "UPDATE erasures SET value = value || %(at)s WHERE topic_id = %(topic)s AND id = ANY(%(ids)s)"
        " AND finished_at IS NULL AND (value ? %(searched)s OR NOT value ? %(condition)s)",
        {
            "topic": topic.id,
            "ids": list(erasure_ids),
            "at": Jsonb({SEARCHED_MS: searched_ms}),
            "searched": SEARCHED_MS,
            "condition": CONDITION,
        },
    )


def note_waiting(
    connection: Connection, topic: TopicRow, erasure_ids: Iterable[str], waits_for: Mapping[str, Any]
) -> None:
    connection.execute(
        "UPDATE erasures SET value = (value - %(key)s) || %(told)s WHERE topic_id = %(topic)s AND id = ANY(%(ids)s)"
        " AND finished_at IS NULL",
        {
            "topic": topic.id,
            "ids": list(erasure_ids),
            "key": WAITS_FOR,
            "told": Jsonb({WAITS_FOR: dict(waits_for)} if waits_for else {}),
        },
    )


def finish_erasures(connection: Connection, topic: TopicRow, erasure_ids: Iterable[str]) -> None:
    connection.execute(
        "UPDATE erasures SET finished_at = now() WHERE topic_id = %s AND id = ANY(%s) AND finished_at IS NULL",
        (topic.id, list(erasure_ids)),
    )


def open_erasures(connection: Connection, topic: TopicRow) -> dict[str, dict[str, Any]]:
    rows = connection.execute(
        "SELECT id, value FROM erasures WHERE topic_id = %s AND finished_at IS NULL ORDER BY id", (topic.id,)
    )
    return dict(rows.fetchall())


def promised_seconds(connection: Connection, topic: TopicRow) -> float:
    """The longest promise of open erasures to readers of older snapshots."""
    waiting = open_erasures(connection, topic).values()
    return max((float(str(erasure.get("grace_seconds", 0))) for erasure in waiting), default=0.0)
