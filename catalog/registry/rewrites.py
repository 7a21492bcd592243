"""Rewrites in the registry: remembered before their commit, and the rows of `files` that they replace.

Rows of the registry's `metadata` under the key `rewrite`, by commit id. Functions take a connection inside a
transaction; calling one again is safe.
"""

from __future__ import annotations

from psycopg.types.json import Jsonb

from catalog.iceberg.rewrite import Rewrite
from catalog.model import DataFileInfo, TopicRow, new_id
from catalog.registry import expected, files, topics
from catalog.registry.postgres import Connection

_KEY = "rewrite"


def begin(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Remember a rewrite before it is committed, so that its fate can be found out whatever happens."""
    topics.lock(connection, topic)
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (topic.id, _KEY, rewrite.commit_id, Jsonb(rewrite.to_json())),
    )


def unfinished(connection: Connection, topic: TopicRow) -> tuple[Rewrite, ...]:
    """Rewrites that were begun and whose fate is not recorded, the oldest first."""
    found = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND NOT deleted ORDER BY name", (topic.id, _KEY)
    )
    return tuple(Rewrite.from_json(value) for (value,) in found)


def finish(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Replace the rows of the old files, where the registry has them, by rows of the new ones."""
    topics.lock(connection, topic)
    for one in rewrite.replacements:
        _replace(connection, topic, rewrite, one.path, one.file)
    forget(connection, topic, rewrite)


def forget(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Mark a rewrite as settled: its new files are recorded, or it will never be in the table."""
    connection.execute(
        "UPDATE metadata SET deleted = true, updated = now() WHERE topic_id = %s AND key = %s AND name = %s",
        (topic.id, _KEY, rewrite.commit_id),
    )


def _replace(connection: Connection, topic: TopicRow, rewrite: Rewrite, path: str, file: DataFileInfo) -> None:
    # A range that its archiver has not confirmed yet is in the table all the same, or it could not be replaced.
    replaced = connection.execute(
        "UPDATE files SET state = 'replaced', committed_at = coalesce(committed_at, now()), reason = %s"
        " WHERE topic_id = %s AND path = %s AND state IN ('uploaded', 'committed') RETURNING id",
        (f"{rewrite.reason}: commit {rewrite.commit_id}", topic.id, path),
    ).fetchone()
    if replaced is not None:
        successor = files.load(connection, topic, str(replaced[0])).succeeded_by(
            new_id(), file, schema_version=rewrite.schema_version
        )
        files.insert_committed(connection, topic, (successor,), commit_id=rewrite.commit_id)
        expected.inherit(connection, topic, old_id=str(replaced[0]), new_id=successor.id)
