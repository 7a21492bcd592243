"""The first offset of each partition, kept when it is first decided (docs/concepts.md, step 1).

"latest" or a time means another offset at each look, and a log may lose its first records before they are archived.
Nothing is staged until records come, so the decision itself is kept, as rows of the registry's `metadata` by partition:

- `start` is the offset that "latest" or a time meant.
- `start_pending` is the leader epoch that had ended when a partition had no leader to ask for that offset.
- `first_log_start` is where the log of a partition that is archived from its beginning began at the first look.

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.registry.postgres import Connection

_Key: TypeAlias = Literal["start", "start_pending", "first_log_start"]


def decide(
    connection: Connection,
    topic: TopicRow,
    decided: Mapping[int, int] | None = None,
    *,
    pending: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Keep the first offsets in `decided` of partitions that have none yet; return those of all partitions.

    `pending` has the partitions without a leader to ask, each with the leader epoch that had ended by then. Both are
    kept together.
    """
    if pending:
        _remember(connection, topic, pending, key="start_pending")
    return _remember(connection, topic, decided or {}, key="start")


def pending(connection: Connection, topic: TopicRow) -> dict[int, int]:
    """The leader epochs that had ended where a partition had no leader to ask for its first offset, by partition."""
    return _remember(connection, topic, {}, key="start_pending")


def first_log_starts(connection: Connection, topic: TopicRow, seen: Mapping[int, int] | None = None) -> dict[int, int]:
    """Where logs began at the first look. `seen` is kept for partitions that have none yet."""
    return _remember(connection, topic, seen or {}, key="first_log_start")


def known(connection: Connection, topic: TopicRow) -> dict[int, int]:
    """Where the archive of each partition begins: at its decided first offset, else where its log began."""
    return _remember(connection, topic, {}, key="first_log_start") | _remember(connection, topic, {}, key="start")


def _remember(connection: Connection, topic: TopicRow, values: Mapping[int, int], *, key: _Key) -> dict[int, int]:
    """Keep the values of partitions that have none yet; return the kept values of all partitions."""
    if values:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [(topic.id, key, str(partition), Jsonb(value)) for partition, value in sorted(values.items())],
            )
    found = connection.execute(
        "SELECT name::integer, value::bigint FROM metadata WHERE topic_id = %s AND key = %s AND NOT deleted",
        (topic.id, key),
    )
    return dict(found.fetchall())
