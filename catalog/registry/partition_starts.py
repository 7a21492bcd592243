"""The first offset of each partition, stored when decided (docs/concepts.md, step 1).

In `metadata`: `start`, `start_pending` (the leader epoch that had ended when there was no leader), `first_log_start`
(as first seen).
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
    """`pending` has ended leader epochs of partitions without a leader, stored together. Return all first offsets."""
    if pending:
        _remember(connection, topic, pending, key="start_pending")
    return _remember(connection, topic, decided or {}, key="start")


def pending(connection: Connection, topic: TopicRow) -> dict[int, int]:
    return _remember(connection, topic, {}, key="start_pending")


def first_log_starts(connection: Connection, topic: TopicRow, seen: Mapping[int, int] | None = None) -> dict[int, int]:
    """`seen` is stored for partitions without one."""
    return _remember(connection, topic, seen or {}, key="first_log_start")


def known(connection: Connection, topic: TopicRow) -> dict[int, int]:
    return _remember(connection, topic, {}, key="first_log_start") | _remember(connection, topic, {}, key="start")


def _remember(connection: Connection, topic: TopicRow, values: Mapping[int, int], *, key: _Key) -> dict[int, int]:
    if values:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [(topic.id, key, str(partition), Jsonb(value)) for partition, value in sorted(values.items())],
            )
    rows = connection.execute(
        "SELECT name::integer, value::bigint FROM metadata WHERE topic_id = %s AND key = %s AND NOT deleted",
        (topic.id, key),
    )
    return dict(rows.fetchall())
