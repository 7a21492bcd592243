"""`intake_logs`: the write-ahead log with a topic's acknowledged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg.types.json import Jsonb

from catalog.errors import LogAbandoned, LogElsewhere
from catalog.model import TopicRow
from catalog.registry import topics
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenLog:
    """`state` is the last drained log's, for a log without one. Empty for the first log."""

    epoch: int
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeLogRow:
    """`next_offsets` are of `reported_at`, by partition; `silent_seconds` have passed since.

    Everything acknowledged before request `written` is in the table, and no longer in the log. The table has all rows
    of one of the `states`. `abandoned` are ids of given up logs: this one while `archiver abandon` is at work.
    """

    wal_id: str
    folder: str
    epoch: int
    drained: bool
    next_offsets: Mapping[int, int]
    reported_at: datetime
    silent_seconds: float = 0.0
    requested: int = 0
    written: int = 0
    states: Sequence[Mapping[str, Any]] = ()
    abandoned: frozenset[str] = frozenset()

    @property
    def is_given_up(self) -> bool:
        return self.wal_id in self.abandoned


def take(connection: Connection, topic: TopicRow, *, wal_id: str, folder: str, least_epoch: int = 0) -> TakenLog:
    """Begins a new epoch of at least `least_epoch`.

    Raises LogElsewhere if another log has acknowledged rows that may not be in the table, LogAbandoned if this one was
    given up.
    """
    topics.lock(connection, topic)
    row = connection.execute(
        "SELECT wal_id, folder, epoch, drained, state, abandoned FROM intake_logs WHERE topic_id = %s", (topic.id,)
    ).fetchone()
    state: Mapping[str, Any] = {}
    epoch = max(least_epoch, 1)
    if row is not None:
        current_id, other_folder, last_epoch, drained, state, abandoned = row
        epoch = max(epoch, last_epoch + 1)
        if wal_id in _ids(abandoned):
            raise abandoned_error(topic.topic, folder=folder)
        if current_id != wal_id and not drained and current_id in _ids(abandoned):
            raise LogElsewhere(
                "the topic's write-ahead log is being given up: run `archiver abandon TOPIC` again if it doesn't run"
                " any more, then start the server again",
                topic=topic.topic,
                log=other_folder,
            )
        if current_id != wal_id and not drained:
            raise LogElsewhere(
                "another write-ahead log has acknowledged rows of the topic. Start the server with that log: it"
                " writes the rows to the table. After it was stopped in order, the topic can move to this one. If that"
                " log can't be restored, `archiver abandon TOPIC --dry-run` prints which rows only it had",
                topic=topic.topic,
                log=other_folder,
                this_log=folder,
            )
    connection.execute(
        "INSERT INTO intake_logs (topic_id, wal_id, folder, epoch) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id) DO UPDATE SET wal_id = excluded.wal_id, folder = excluded.folder,"
        " epoch = excluded.epoch, drained = false, taken_at = now(), reported_at = now()",
        (topic.id, wal_id, folder, epoch),
    )
    return TakenLog(epoch=epoch, state=state)


def drain(connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, state: Mapping[str, Any]) -> bool:
    """The table has all rows of the log. False if a later epoch has it."""
    updated = connection.execute(
        "UPDATE intake_logs SET drained = true, state = %s, states = '[]', written = requested"
        " WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (Jsonb(state), topic.id, wal_id, epoch),
    )
    return updated.rowcount == 1


def report(
    connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, next_offsets: Mapping[int, int]
) -> None:
    """Store the offsets after the last durable rows, for people, unless a later epoch has the log."""
    offsets = {str(partition): offset for partition, offset in next_offsets.items()}
    connection.execute(
        "UPDATE intake_logs SET next_offsets = %s, reported_at = now()"
        " WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (Jsonb(offsets), topic.id, wal_id, epoch),
    )


def request(connection: Connection, topic: TopicRow) -> int:
    """Have the log's server write everything to the table; return the request's number."""
    row = connection.execute(
        "UPDATE intake_logs SET requested = requested + 1 WHERE topic_id = %s RETURNING requested", (topic.id,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def wrote(connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, number: int) -> None:
    """Nothing happens if a later epoch has the log."""
    connection.execute(
        "UPDATE intake_logs SET written = greatest(written, %s) WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (number, topic.id, wal_id, epoch),
    )


def keep_states(
    connection: Connection, topic: TopicRow, *, wal_id: str, epoch: int, states: Sequence[Mapping[str, Any]]
) -> bool:
    """Of the last turns, oldest first. False if a later epoch has the log."""
    updated = connection.execute(
        "UPDATE intake_logs SET states = %s WHERE topic_id = %s AND wal_id = %s AND epoch = %s",
        (Jsonb(list(states)), topic.id, wal_id, epoch),
    )
    return updated.rowcount == 1


def last_state(connection: Connection, topic: TopicRow) -> Mapping[str, Any]:
    """Empty if no log was drained."""
    row = connection.execute("SELECT state FROM intake_logs WHERE topic_id = %s", (topic.id,)).fetchone()
    return {} if row is None else dict(row[0])


def begin_abandon(connection: Connection, topic: TopicRow, *, log: IntakeLogRow, state: Mapping[str, Any]) -> bool:
    """Begin a new epoch with `state` alone, so that no server takes the log or reports.

    False if the log has changed since `log` was read.
    """
    entry = {"wal_id": log.wal_id, "folder": log.folder, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    updated = connection.execute(
        "UPDATE intake_logs SET states = %s, epoch = epoch + 1, abandoned = abandoned || %s"
        " WHERE topic_id = %s AND wal_id = %s AND epoch = %s AND NOT drained AND reported_at = %s",
        (Jsonb([state]), Jsonb([entry]), topic.id, log.wal_id, log.epoch, log.reported_at),
    )
    return updated.rowcount == 1


def abandoned_error(topic: str, *, folder: str) -> LogAbandoned:
    return LogAbandoned(
        "this write-ahead log was given up by `archiver abandon`: rows that only it had are recorded as lost, and their"
        " offsets are never given again. Move its folder away, and keep it if its rows are needed; then start the"
        " server again",
        topic=topic,
        log=folder,
    )


def of_topics(connection: Connection, rows: Sequence[TopicRow]) -> dict[int, IntakeLogRow]:
    """By topic id."""
    logs = connection.execute(
        "SELECT topic_id, wal_id, folder, epoch, drained, next_offsets, reported_at,"
        " extract(epoch FROM now() - reported_at)::float8, requested, written, states, abandoned"
        " FROM intake_logs WHERE topic_id = ANY(%s)",
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
            silent_seconds=silent,
            requested=requested,
            written=written,
            states=states,
            abandoned=_ids(abandoned),
        )
        for (
            topic_id,
            wal_id,
            folder,
            epoch,
            drained,
            next_offsets,
            reported_at,
            silent,
            requested,
            written,
            states,
            abandoned,
        ) in logs
    }


def _ids(abandoned: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(entry["wal_id"] for entry in abandoned)
