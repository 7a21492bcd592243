"""`intake_logs`: the write-ahead log that has a topic's acknowledged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from catalog.errors import LogElsewhere
from catalog.model import TopicRow
from catalog.registry import topics
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenLog:
    """`state` is of the log that was drained last, for a log that has none yet. Empty for the first log."""

    epoch: int
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeLogRow:
    """`next_offsets` are of `reported_at`, by partition."""

    wal_id: str
    folder: str
    epoch: int
    drained: bool
    next_offsets: Mapping[int, int]
    reported_at: datetime


def take(connection: Connection, topic: TopicRow, *, wal_id: str, folder: str, least_epoch: int = 0) -> TakenLog:
    """Take the log for this process, in a new epoch of at least `least_epoch`.

    Raises LogElsewhere if another log has acknowledged rows that may not be in the table.
    """
    topics.lock(connection, topic)
    row = connection.execute(
        "SELECT wal_id, folder, epoch, drained, state FROM intake_logs WHERE topic_id = %s", (topic.id,)
    ).fetchone()
    state: Mapping[str, Any] = {}
    epoch = max(least_epoch, 1)
    if row is not None:
        other, other_folder, last_epoch, drained, state = row
        epoch = max(epoch, last_epoch + 1)
        if other != wal_id and not drained:
            raise LogElsewhere(
                "another write-ahead log has acknowledged rows of the topic. Start the server with that log: it"
                " writes the rows to the table. After it was stopped in order, the topic can move to this one",
                topic=topic.topic,
                log=other_folder,
                this_log=folder,
            )
    connection.execute(
        "INSERT INTO intake_logs (topic_id, wal_id, folder, epoch) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id) DO UPDATE SET wal_id = excluded.wal_id, folder = excluded.folder,"
        " epoch = excluded.epoch, drained = false, taken_at = now()",
        (topic.id, wal_id, folder, epoch),
    )
    return TakenLog(epoch=epoch, state=state)


def drain(connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, state: Mapping[str, Any]) -> bool:
    """Note that the table has all rows of the log. False if a later epoch has it."""
    updated = connection.execute(
        "UPDATE intake_logs SET drained = true, state = %s WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (Jsonb(state), topic.id, wal_id, epoch),
    )
    return updated.rowcount == 1


def report(
    connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, next_offsets: Mapping[int, int]
) -> None:
    """Store the offsets after the last durable rows, for people. Nothing happens if a later epoch has the log."""
    offsets = {str(partition): offset for partition, offset in next_offsets.items()}
    connection.execute(
        "UPDATE intake_logs SET next_offsets = %s, reported_at = now()"
        " WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (Jsonb(offsets), topic.id, wal_id, epoch),
    )


def of_topics(connection: Connection, rows: Sequence[TopicRow]) -> dict[int, IntakeLogRow]:
    """The logs by the registry's id of the topic."""
    logs = connection.execute(
        "SELECT topic_id, wal_id, folder, epoch, drained, next_offsets, reported_at FROM intake_logs"
        " WHERE topic_id = ANY(%s)",
        ([row.id for row in rows],),
    )
    return {
        topic_id: IntakeLogRow(
            wal_id=wal_id,
            folder=folder,
            epoch=epoch,
            drained=drained,
            next_offsets={int(partition): offset for partition, offset in next_offsets.items()},
            reported_at=reported_at,
        )
        for topic_id, wal_id, folder, epoch, drained, next_offsets, reported_at in logs
    }
