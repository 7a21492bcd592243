"""Shrink rows of old ranges, dropping column statistics (docs/adr/0028).

Adjacent ranges without files are joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from psycopg.types.json import Jsonb

from catalog.model import NO_DETAILS, TopicRow, file_name
from catalog.registry import topics
from catalog.registry.postgres import Connection

KEPT_DAYS: Final = 30
"""How long rows stay complete after their commit: longer than anybody would wait to repair a rollback."""

BATCH: Final = 2_000

_OLD = "now() - make_interval(days => %(days)s)"
_IS_EMPTY = (
    "path IS NULL AND NOT lost AND state = 'committed' AND expected_rows IS NULL"
    " AND erased_rows + lost_rows + retired_rows = 0"
)
_CANDIDATES = f"""
SELECT id, partition, start_offset, end_offset, leader_epoch, {_IS_EMPTY}
FROM files WHERE topic_id = %(topic)s AND NOT slim AND committed_at < {_OLD} ORDER BY committed_at LIMIT %(batch)s
"""  # noqa: S608 - no input
_BEFORE = f"""
SELECT id, end_offset, {_IS_EMPTY} FROM files
WHERE topic_id = %s AND partition = %s AND start_offset < %s AND state IN ('uploaded', 'committed')
ORDER BY start_offset DESC LIMIT 1
"""  # noqa: S608 - no input


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    slimmed: int = 0
    removed: int = 0


def trim(connection: Connection, topic: TopicRow, *, days: float = KEPT_DAYS, batch: int = BATCH) -> Trimmed:
    """A batch of rows committed at least `days` ago, and settled rewrites of that age."""
    topics.lock(connection, topic)
    old = {"topic": topic.id, "days": int(days), "batch": batch}
    rows = connection.execute(_CANDIDATES, old).fetchall()
    removed = 0
    for range_id, partition, start, end, epoch, is_mergeable in sorted(rows, key=lambda row: row[1:3]):
        if not is_mergeable:
            continue
        before = connection.execute(_BEFORE, (topic.id, partition, start)).fetchone()
        if before is not None and before[1] == start and before[2]:
            connection.execute("DELETE FROM files WHERE id = %s", (range_id,))
            connection.execute(
                "UPDATE files SET end_offset = %s, leader_epoch = greatest(leader_epoch, %s) WHERE id = %s",
                (end, epoch, before[0]),
            )
            removed += 1
    slimmed = connection.execute(
        "UPDATE files SET slim = true, file = file || %s WHERE id = ANY(%s)",
        (Jsonb(NO_DETAILS), [row[0] for row in rows]),
    ).rowcount
    connection.execute(
        f"DELETE FROM metadata WHERE topic_id = %(topic)s AND key = 'rewrite' AND deleted AND updated < {_OLD}",  # noqa: S608 - no input
        old,
    )
    return Trimmed(slimmed=slimmed, removed=removed)


def ended_files(connection: Connection, topic: TopicRow, *, days: float = KEPT_DAYS) -> dict[str, str]:
    """The store may lack these files: then call `forget_deleted`."""
    rows = connection.execute(
        "SELECT path, id FROM files WHERE topic_id = %s AND state IN ('rejected', 'replaced') AND path IS NOT NULL"
        " AND coalesce(committed_at, to_timestamp(created_ms / 1000.0)) < now() - make_interval(secs => %s)",
        (topic.id, days * 86_400),
    )
    return dict(rows.fetchall())


def forget_deleted(connection: Connection, topic: TopicRow, files: Mapping[str, str]) -> None:
    """`files` are paths with ULIDs, rejected or replaced."""
    connection.execute(
        "DELETE FROM files WHERE topic_id = %s AND state IN ('rejected', 'replaced')"
        " AND (path = ANY(%s) OR id = ANY(%s)) AND substring(path from '[^/]*$') = ANY(%s)",
        (topic.id, list(files), list(files.values()), [file_name(path) for path in files]),
    )
