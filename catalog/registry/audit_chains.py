"""The audit trail's chains, and entries not yet in the journal's store.

Both change in one transaction under the chain's row lock, so no entry is lost while the store is down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from catalog.digests import add_digests
from catalog.model import TopicRow
from catalog.registry import topics
from catalog.registry.postgres import Connection

KEPT_DAYS: Final = 30
"""How long it is remembered which acts have an entry. Nothing that is still open is as old."""

_HEAD: Final = """
SELECT table_uuid, entries, last_hash, digest, schema_version, config_holds,
       checkpoint_entries, checkpoint_hash, checkpoint_at,
       EXISTS (SELECT FROM audit_entries AS one WHERE one.topic_id = chain.topic_id AND line IS NOT NULL),
       EXISTS (SELECT FROM audit_intents AS one WHERE one.topic_id = chain.topic_id)
FROM audit_chains AS chain WHERE topic_id = %s
"""
_SET_END: Final = """
UPDATE audit_chains SET entries = %s, last_hash = %s, digest = %s, schema_version = %s, config_holds = %s
WHERE topic_id = %s
"""

_BEGIN: Final = """
INSERT INTO audit_chains (topic_id, table_uuid, entries, last_hash, digest, schema_version, config_holds)
SELECT %s, %s, %s, %s, %s, %s, %s WHERE NOT EXISTS (SELECT FROM audit_chains WHERE topic_id = %s)
RETURNING 1
"""
"""Under the topic's row lock. `ON CONFLICT` would wait there for who changes the chain, who may wait for that lock."""
_OF_ACT_OR_WAITING: Final = """
SELECT seq, act_id, range_ids, line FROM audit_entries WHERE topic_id = %s AND (line IS NOT NULL OR act_id = %s)
ORDER BY seq
"""
_ADD: Final = f"""
WITH put AS (INSERT INTO audit_entries (topic_id, seq, act_id, range_ids, line) VALUES (%s, %s, %s, %s, %s)),
    settled AS (DELETE FROM audit_intents WHERE topic_id = %s AND act_id = %s)
{_SET_END}
"""  # noqa: S608 - no input


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """`digest` is the table's.

    `config_holds` counts entries about `hold = true` in the configuration. `has_waiting`: entries wait for the store;
    `has_intents`: commits for their outcome.
    """

    table_uuid: UUID
    entries: int
    last_hash: str
    digest: str | None
    schema_version: int = 0
    config_holds: int = 0
    checkpoint_entries: int = 0
    checkpoint_hash: str | None = None
    checkpoint_at: datetime | None = None
    has_waiting: bool = False
    has_intents: bool = False

    @property
    def is_held_by_config(self) -> bool:
        return self.config_holds % 2 == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """`digest` is the table's after it. Fields are None if the entry isn't about them."""

    line: str
    hash: str
    digest: str | None
    schema_version: int | None = None
    config_holds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEntry:
    seq: int
    act_id: str
    range_ids: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A planned commit on snapshot (or spec) `parent`, with its future entry as JSON."""

    act_id: str
    commit_id: str
    parent: int | None
    begun: datetime
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """`digest` is None if a file has none."""

    rows: int
    files: int
    digest: str | None


def head(connection: Connection, topic: TopicRow) -> ChainHead | None:
    return _head(connection, topic)


def begin(connection: Connection, topic: TopicRow, start: ChainHead, known: Sequence[tuple[int, str]] = ()) -> None:
    """Begin a chain, or one that the store has with `known` entries (number and act). Once."""
    topics.lock(connection, topic)
    begun = connection.execute(
        _BEGIN,
        (
            topic.id,
            start.table_uuid,
            start.entries,
            start.last_hash,
            start.digest,
            start.schema_version,
            start.config_holds,
            topic.id,
        ),
    ).fetchone()
    if begun is not None:
        _remember(connection, topic, known)


def take_up(
    connection: Connection,
    topic: TopicRow,
    seen: ChainHead,
    start: ChainHead,
    *,
    known: Sequence[tuple[int, str]],
    again: Callable[[WaitingEntry, ChainHead], NewEntry],
) -> bool:
    """Continue from `start` in the store, making waiting entries `again`.

    Heals a restored database. Returns False if the chain is no longer as `seen`.
    """
    end = _head(connection, topic, " FOR UPDATE")
    if end is None or (end.entries, end.last_hash) != (seen.entries, seen.last_hash):
        return False
    left = waiting(connection, topic)
    connection.execute("DELETE FROM audit_entries WHERE topic_id = %s", (topic.id,))
    connection.execute(
        _SET_END,
        (start.entries, start.last_hash, start.digest, start.schema_version, start.config_holds, topic.id),
    )
    _remember(connection, topic, known)
    for entry in left:
        append(connection, topic, entry.act_id, partial(again, entry), entry.range_ids)
    return True


def append(
    connection: Connection,
    topic: TopicRow,
    act_id: str,
    make: Callable[[ChainHead], NewEntry],
    range_ids: Sequence[str] = (),
) -> tuple[WaitingEntry, ...] | None:
    """Add an entry unless the act has one; return waiting entries, None without a chain. Settles the act's intent."""
    end = _head(connection, topic, " FOR UPDATE")
    if end is None:
        return None
    rows = connection.execute(_OF_ACT_OR_WAITING, (topic.id, act_id)).fetchall()  # only now: the lock may have waited
    left = tuple(map(_waiting, (row for row in rows if row[3] is not None)))
    if any(row[1] == act_id for row in rows):
        forget_intent(connection, topic, act_id)
        return left
    made = make(end)
    _add(connection, topic, end, made, act_id=act_id, range_ids=range_ids)
    return (*left, WaitingEntry(seq=end.entries + 1, act_id=act_id, range_ids=tuple(range_ids), line=made.line))


def _add(
    connection: Connection,
    topic: TopicRow,
    end: ChainHead,
    made: NewEntry,
    *,
    act_id: str,
    range_ids: Sequence[str],
) -> None:
    connection.execute(
        _ADD,
        (
            topic.id,
            end.entries + 1,
            act_id,
            list(range_ids),
            made.line,
            topic.id,
            act_id,
            end.entries + 1,
            made.hash,
            made.digest,
            max(made.schema_version or 0, end.schema_version),
            max(made.config_holds or 0, end.config_holds),
            topic.id,
        ),
    )


def unrecorded(connection: Connection, topic: TopicRow, range_ids: Sequence[str]) -> frozenset[str]:
    """The ranges without an entry in the last weeks."""
    rows = connection.execute(
        "SELECT DISTINCT one FROM audit_entries, unnest(range_ids) AS one WHERE topic_id = %s AND one = ANY(%s)",
        (topic.id, list(range_ids)),
    )
    return frozenset(range_ids) - {str(row[0]) for row in rows}


def waiting(connection: Connection, topic: TopicRow) -> tuple[WaitingEntry, ...]:
    rows = connection.execute(
        "SELECT seq, act_id, range_ids, line FROM audit_entries WHERE topic_id = %s AND line IS NOT NULL ORDER BY seq",
        (topic.id,),
    )
    return tuple(map(_waiting, rows))


def note_written(connection: Connection, topic: TopicRow, through: int) -> None:
    """Forget stored lines up to `through`, and old acts."""
    connection.execute(
        "UPDATE audit_entries SET line = NULL WHERE topic_id = %s AND seq <= %s AND line IS NOT NULL",
        (topic.id, through),
    )


def forget_old(connection: Connection, topic: TopicRow) -> None:
    connection.execute(
        "DELETE FROM audit_entries"
        " WHERE topic_id = %s AND line IS NULL AND recorded < now() - make_interval(days => %s)",
        (topic.id, KEPT_DAYS),
    )


def note_checkpoint(connection: Connection, topic: TopicRow, *, entries: int, hash_: str, at: datetime) -> None:
    connection.execute(
        "UPDATE audit_chains SET checkpoint_entries = %s, checkpoint_hash = %s, checkpoint_at = %s"
        " WHERE topic_id = %s AND coalesce(checkpoint_at < %s, true)",
        (entries, hash_, at, topic.id, at),
    )


def intend(connection: Connection, topic: TopicRow, intent: Intent) -> None:
    """Repeating an act replaces its parent."""
    connection.execute(
        "INSERT INTO audit_intents (topic_id, act_id, commit_id, parent, entry) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (topic_id, act_id) DO UPDATE SET parent = excluded.parent, entry = excluded.entry",
        (topic.id, intent.act_id, intent.commit_id, intent.parent, Jsonb(dict(intent.entry))),
    )


def intents(connection: Connection, topic: TopicRow) -> tuple[Intent, ...]:
    """Oldest first."""
    rows = connection.execute(
        "SELECT act_id, commit_id, parent, begun, entry FROM audit_intents WHERE topic_id = %s ORDER BY begun",
        (topic.id,),
    )
    return tuple(
        Intent(act_id=act_id, commit_id=commit_id, parent=parent, begun=begun, entry=entry)
        for act_id, commit_id, parent, begun, entry in rows
    )


def forget_intent(connection: Connection, topic: TopicRow, act_id: str) -> None:
    connection.execute("DELETE FROM audit_intents WHERE topic_id = %s AND act_id = %s", (topic.id, act_id))


def holdings(connection: Connection, topic: TopicRow) -> Holdings:
    rows, digests, paths = 0, [], set()
    with connection.cursor(name="holdings") as cursor:
        cursor.execute(
            "SELECT rows, digest, path FROM files WHERE topic_id = %s AND state = 'committed' AND path IS NOT NULL",
            (topic.id,),
        )
        for count, digest, path in cursor:
            rows += count
            digests.append(digest)
            paths.add(path)
    return Holdings(rows=rows, files=len(paths), digest=add_digests(digests))


def old_digest(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> str | None:
    """None if a file or its digest is unknown."""
    rows = connection.execute(
        "SELECT path, digest FROM files WHERE topic_id = %s AND path = ANY(%s) AND state IN ('uploaded', 'committed')",
        (topic.id, list(paths)),
    ).fetchall()
    return add_digests(row[1] for row in rows) if {row[0] for row in rows} == set(paths) else None


def _head(connection: Connection, topic: TopicRow, lock: str = "") -> ChainHead | None:
    row = connection.execute(_HEAD + lock, (topic.id,)).fetchone()
    if row is None:
        return None
    table_uuid, entries, last_hash, digest, version, holds, *checkpoint, has_waiting, has_intents = row
    checkpointed, checkpoint_hash, at = checkpoint
    return ChainHead(
        table_uuid=table_uuid,
        entries=entries,
        last_hash=last_hash,
        digest=digest,
        schema_version=version,
        config_holds=holds,
        checkpoint_entries=checkpointed,
        checkpoint_hash=checkpoint_hash,
        checkpoint_at=at,
        has_waiting=has_waiting,
        has_intents=has_intents,
    )


def _waiting(row: tuple[Any, ...]) -> WaitingEntry:
    seq, act_id, range_ids, line = row
    return WaitingEntry(seq=seq, act_id=act_id, range_ids=tuple(range_ids), line=line)


def _remember(connection: Connection, topic: TopicRow, known: Sequence[tuple[int, str]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO audit_entries (topic_id, seq, act_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [(topic.id, seq, act_id) for seq, act_id in known],
        )
