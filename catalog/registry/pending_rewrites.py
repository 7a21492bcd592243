"""Rewrites: checked and stored before the commit, recorded in `files` after.

In `metadata` under `rewrite`, by commit id; abandoned ones also under `rewrite-ending`. Idempotent.
"""

from __future__ import annotations

from psycopg.types.json import Jsonb

from catalog.account.interval import Interval
from catalog.model import TopicRow
from catalog.ranges.regrouping import regrouped
from catalog.ranges.replaced_files import files_of_other_engines, removal_reason
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.registry import (
    account_rows,
    erased_offsets,
    file_rows,
    first_offsets,
    holds,
    inherited_terms,
    replaced_rows,
    topics,
)
from catalog.registry.postgres import Connection

_KEY = "rewrite"
_ENDING = "rewrite-ending"


def begin(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Raises RewriteRefused if records are unaccounted for, RecordsHeld if it would remove held ones."""
    topics.lock(connection, topic)
    holds.check(connection, topic, rewrite)
    for group in rewrite.groups:
        regrouped(rewrite, group, file_rows.of_group(connection, topic, group), is_done=False)
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (topic.id, _KEY, rewrite.commit_id, Jsonb(rewrite.to_json())),
    )


def unfinished(connection: Connection, topic: TopicRow) -> tuple[Rewrite, ...]:
    rows = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND NOT deleted ORDER BY name", (topic.id, _KEY)
    )
    return tuple(Rewrite.from_json(value) for (value,) in rows)


def may_go_on(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> bool:
    """Whether a rewrite is neither settled nor being ended. Call it before each attempt."""
    cursor = connection.execute(
        "SELECT 1 FROM metadata WHERE topic_id = %(topic)s AND key = %(key)s AND name = %(name)s AND NOT deleted"
        " AND NOT EXISTS (SELECT FROM metadata AS one WHERE one.topic_id = %(topic)s AND one.key = %(ending)s"
        " AND one.name = %(name)s)",
        {"topic": topic.id, "key": _KEY, "name": rewrite.commit_id, "ending": _ENDING},
    )
    return cursor.fetchone() is not None


def begin_to_end(connection: Connection, topic: TopicRow, rewrite: Rewrite, *, silent_seconds: float) -> bool:
    """Forbid attempts of a rewrite begun `silent_seconds` ago. False if it is younger."""
    cursor = connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) SELECT topic_id, %s, name, '{}' FROM metadata"
        " WHERE topic_id = %s AND key = %s AND name = %s AND NOT deleted"
        " AND updated < now() - make_interval(secs => %s) ON CONFLICT DO NOTHING RETURNING 1",
        (_ENDING, topic.id, _KEY, rewrite.commit_id, silent_seconds),
    )
    return cursor.fetchone() is not None


def note_last_attempt(connection: Connection, topic: TopicRow, rewrite: Rewrite, *, sequence: int) -> None:
    """`sequence` was read after attempts were forbidden."""
    connection.execute(
        "UPDATE metadata SET value = %s WHERE topic_id = %s AND key = %s AND name = %s AND value = '{}'",
        (Jsonb({"sequence": sequence}), topic.id, _ENDING, rewrite.commit_id),
    )


def ending(connection: Connection, topic: TopicRow) -> dict[str, int | None]:
    """By commit id, with the noted sequence number."""
    rows = connection.execute(
        "SELECT name, (value->>'sequence')::bigint FROM metadata WHERE topic_id = %s AND key = %s", (topic.id, _ENDING)
    )
    return dict(rows.fetchall())


def finish(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    topics.lock(connection, topic)
    for group in rewrite.groups:
        _replace(connection, topic, rewrite, group)
    first_offsets.move(connection, topic, rewrite)
    account_rows.retire(connection, topic, rewrite.first_offsets)
    erased_offsets.add(connection, topic, rewrite.erased, commit_id=rewrite.commit_id)
    inherited_terms.inherit(connection, topic, rewrite)
    forget(connection, topic, rewrite)


def forget(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """The rewrite is recorded, or never lands. Its files' bounds may have keys that are erased later."""
    connection.execute(
        "UPDATE metadata SET deleted = true, value = '{}', updated = now()"
        " WHERE topic_id = %s AND key = %s AND name = %s",
        (topic.id, _KEY, rewrite.commit_id),
    )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _ENDING, rewrite.commit_id)
    )


def _replace(connection: Connection, topic: TopicRow, rewrite: Rewrite, group: RewriteGroup) -> None:
    # An uploaded range is in the table too, though its archiver has not confirmed it: else it could not be replaced.
    old = file_rows.of_group(connection, topic, group)
    new = regrouped(rewrite, group, old, is_done=True)
    connection.execute(
        "UPDATE files SET state = 'replaced', committed_at = coalesce(committed_at, now()), reason = %s,"
        " replaced_by = %s, part = 0, parts = 1, range_id = NULL"
        " WHERE topic_id = %s AND path = ANY(%s) AND state IN ('uploaded', 'committed')",
        (removal_reason(rewrite, group), rewrite.commit_id, topic.id, list(group.known_paths)),
    )
    without_file = [stored.id for stored in old if not stored.paths]
    connection.execute("DELETE FROM files WHERE id = ANY(%s) AND path IS NULL", (without_file,))
    file_rows.put_committed(connection, topic, new, known={file.id for range_ in old for file in range_.files})
    account_rows.restore(connection, topic, map(Interval.of, old))
    account_rows.rewrite(connection, topic, group, rewrite.commit_id)
    rows = connection.execute(
        "SELECT path FROM files WHERE topic_id = %s AND path = ANY(%s)", (topic.id, list(group.paths))
    )
    recorded = [path for (path,) in rows]
    replaced_rows.restore(connection, topic, files_of_other_engines(rewrite, group, old, recorded))
