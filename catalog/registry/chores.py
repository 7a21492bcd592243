"""Progress of background work: cursors over commits, and failures.

Rows are numbered when confirmed, or when a chore reads them. No commit appears below a number already read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from catalog.model import TopicRow
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import file_rows
from catalog.registry.postgres import Connection

_TAKE: Final = " ON CONFLICT (topic_id) DO UPDATE SET last = commit_numbers.last + 1 RETURNING last"


def numbered(condition: str) -> str:
    """SQL before an UPDATE of files that meet `condition`, which uses `(SELECT last FROM numbered)`.

    Takes a number before row locks, and none without rows.
    """
    return (
        "WITH numbered AS (INSERT INTO commit_numbers (topic_id, last) SELECT %(topic)s, 1"  # noqa: S608 - no input
        f" WHERE EXISTS (SELECT FROM files WHERE {condition}){_TAKE}) "
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreState:
    """Done up to `cursor`, with `behind` more commits. `failures` are since `ended_at`."""

    chore: str
    cursor: int = 0
    behind: int = 0
    ended_at: datetime | None = None
    failures: int = 0
    failed_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedCommits:
    """`through` is the last commit's number."""

    through: int
    ranges: tuple[StoredRange, ...]


def state(connection: Connection, topic: TopicRow, chore: str) -> ChoreState:
    row = connection.execute(
        "SELECT coalesce(cursor, 0), greatest(coalesce(last, 0) - coalesce(cursor, 0), 0), ended_at,"
        " coalesce(failures, 0), failed_at, error FROM topics"
        " LEFT JOIN commit_numbers ON commit_numbers.topic_id = id"
        " LEFT JOIN chores ON chores.topic_id = id AND chore = %s WHERE id = %s",
        (chore, topic.id),
    ).fetchone()
    return ChoreState(chore=chore) if row is None else _state(chore, row)


def of_topics(connection: Connection, topics: Sequence[TopicRow]) -> dict[int, tuple[ChoreState, ...]]:
    rows = connection.execute(
        "SELECT chores.topic_id, chore, cursor, greatest(coalesce(last, 0) - cursor, 0), ended_at, failures, failed_at,"
        " error FROM chores LEFT JOIN commit_numbers USING (topic_id) WHERE chores.topic_id = ANY(%s) ORDER BY chore",
        ([topic.id for topic in topics],),
    )
    states = defaultdict[int, list[ChoreState]](list)
    for topic_id, chore, *values in rows:
        states[topic_id].append(_state(chore, values))
    return {topic.id: tuple(states[topic.id]) for topic in topics}


def keep_cursor(connection: Connection, topic: TopicRow, chore: str, cursor: int) -> None:
    """A cursor never goes back."""
    connection.execute(
        "INSERT INTO chores (topic_id, chore, cursor) VALUES (%s, %s, %s) ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET cursor = greatest(chores.cursor, excluded.cursor)",
        (topic.id, chore, cursor),
    )


def note_ended(connection: Connection, topic: TopicRow, chore: str) -> None:
    connection.execute(
        "INSERT INTO chores (topic_id, chore, ended_at) VALUES (%s, %s, now()) ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET ended_at = now(), failures = 0, failed_at = NULL, error = NULL",
        (topic.id, chore),
    )


def note_failed(connection: Connection, topic: TopicRow, chore: str, error: str) -> None:
    connection.execute(
        "INSERT INTO chores (topic_id, chore, failures, failed_at, error) VALUES (%s, %s, 1, now(), %s)"
        " ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET failures = chores.failures + 1, failed_at = now(), error = excluded.error",
        (topic.id, chore, error.replace("\x00", "\N{REPLACEMENT CHARACTER}")),
    )


def commits_since(connection: Connection, topic: TopicRow, cursor: int, *, most: int) -> NumberedCommits | None:
    """At most `most` commits, without replaced ranges, whose successors have other numbers."""
    _number_rest(connection, topic)
    numbers = connection.execute(
        "SELECT DISTINCT commit_number FROM files WHERE topic_id = %s AND state = 'committed' AND commit_number > %s"
        " ORDER BY 1 LIMIT %s",
        (topic.id, cursor, most),
    ).fetchall()
    if not numbers:
        return None
    through: int = numbers[-1][0]
    ids = connection.execute(
        "SELECT DISTINCT coalesce(range_id, id) FROM files WHERE topic_id = %s AND state = 'committed'"
        " AND commit_number > %s AND commit_number <= %s",
        (topic.id, cursor, through),
    ).fetchall()
    rows = file_rows.held(connection, topic, f"state = 'committed' AND {file_rows.IDS}", ids=[row[0] for row in ids])
    return NumberedCommits(through=through, ranges=tuple(loaded.range for loaded in rows))


def _number_rest(connection: Connection, topic: TopicRow) -> None:
    unnumbered = "topic_id = %(topic)s AND state = 'committed' AND commit_number IS NULL"
    if connection.execute(f"SELECT 1 FROM files WHERE {unnumbered} LIMIT 1", {"topic": topic.id}).fetchone() is None:  # noqa: S608 - no input
        return
    # the lock of the numbers, taken before the rows are read
    connection.execute(f"INSERT INTO commit_numbers (topic_id, last) VALUES (%(topic)s, 1){_TAKE}", {"topic": topic.id})  # noqa: S608 - no input
    connection.execute(
        "WITH ranked AS (SELECT id, dense_rank() OVER (ORDER BY committed_at, coalesce(commit_id, '')) AS rank"  # noqa: S608 - no input
        f" FROM files WHERE {unnumbered}),"
        " numbered AS (UPDATE files SET commit_number = last + rank FROM ranked, commit_numbers"
        " WHERE files.id = ranked.id AND commit_numbers.topic_id = %(topic)s RETURNING commit_number)"
        " UPDATE commit_numbers SET last = greatest(last, (SELECT max(commit_number) FROM numbered))"
        " WHERE topic_id = %(topic)s",
        {"topic": topic.id},
    )


def _state(chore: str, values: Sequence[Any]) -> ChoreState:
    cursor, behind, ended_at, failures, failed_at, error = values
    return ChoreState(
        chore=chore,
        cursor=cursor,
        behind=behind,
        ended_at=ended_at,
        failures=failures,
        failed_at=failed_at,
        error=error,
    )
