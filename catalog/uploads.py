"""Uploads that a run still wants, long as it may take: files that nothing else in the registry is about yet.

A run renews its claims while it works, and a file's age counts from the last time: what a dead run claimed is an orphan
like any other after a while. Rows of the registry's `metadata` under the key `upload`, by file name. Functions take a
connection inside a transaction; calling one again is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from catalog.model import TopicRow
from catalog.postgres import Connection

KEPT_DAYS: Final = 30
"""Claims that nobody has renewed for so long are removed: their runs are dead."""

_KEY = "upload"


def renew(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    """Claim files of these names as of now; claims of runs that are long dead go."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) SELECT %s, %s, name, '{}' FROM unnest(%s::text[]) AS name"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET updated = now()",
        (topic.id, _KEY, sorted(names)),
    )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND updated < now() - make_interval(days => %s)",
        (topic.id, _KEY, KEPT_DAYS),
    )


def forget(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    """Claim files of these names no longer."""
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = ANY(%s)", (topic.id, _KEY, list(names))
    )


def renewed(connection: Connection, topic: TopicRow, names: Sequence[str]) -> dict[str, int]:
    """When those of these files that are claimed were last so, in ms since 1970."""
    found = connection.execute(
        "SELECT name, (extract(epoch FROM updated) * 1000)::bigint FROM metadata"
        " WHERE topic_id = %s AND key = %s AND name = ANY(%s)",
        (topic.id, _KEY, list(names)),
    )
    return dict(found.fetchall())
