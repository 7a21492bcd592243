"""How far background work on a topic has come: cursors over its commits, and failures.

A confirmed commit gets the topic's next number. Rows that came into the table another way (a rewrite, a rebuild, an
older archiver) are numbered when a chore reads commits, after they are visible. So no commit appears below a number
that a reader has seen. Functions take a connection inside a transaction. They are safe to call again.
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
    """Return SQL to put before an UPDATE of the files that meet `condition`, with `(SELECT last FROM numbered)` in it.

    The number is taken before any row is locked. If no row meets the condition, none is taken.
    """
    return (
        "WITH numbered AS (INSERT INTO commit_numbers (topic_id, last) SELECT %(topic)s, 1"  # noqa: S608 - no input
        f" WHERE EXISTS (SELECT FROM files WHERE {condition}){_TAKE}) "
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreState:
    """A chore of one topic: it has dealt with the commits up to number `cursor`, and `behind` more are in the table.

    `failures` counts since it last ended without one (`ended_at`); `error` is the last failure.
    """

    chore: str
    cursor: int = 0
    behind: int = 0
    ended_at: datetime | None = None
    failures: int = 0
    failed_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedCommits:
    """The ranges that some commits brought and that are in the table now, by partition and offset.

    `through` is the number of the last of these commits.
    """

    through: int
    ranges: tuple[StoredRange, ...]


def state(connection: Connection, topic: TopicRow, chore: str) -> ChoreState:
    """Return how far a chore has come. A chore that never ran begins at 0, before the first commit."""
    row = connection.execute(
        "SELECT coalesce(cursor, 0), greatest(coalesce(last, 0) - coalesce(cursor, 0), 0), ended_at,"
        " coalesce(failures, 0), failed_at, error FROM topics"
        " LEFT JOIN commit_numbers ON commit_numbers.topic_id = id"
        " LEFT JOIN chores ON chores.topic_id = id AND chore = %s WHERE id = %s",
        (chore, topic.id),
    ).fetchone()
    return ChoreState(chore=chore) if row is None else _state(chore, row)


def of_topics(connection: Connection, topics: Sequence[TopicRow]) -> dict[int, tuple[ChoreState, ...]]:
    """Return the chores of each topic that ever ran, by the topic's id."""
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
    """Note that a chore has dealt with the commits up to this number. A cursor never goes back."""
    connection.execute(
        "INSERT INTO chores (topic_id, chore, cursor) VALUES (%s, %s, %s) ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET cursor = greatest(chores.cursor, excluded.cursor)",
        (topic.id, chore, cursor),
    )


def note_ended(connection: Connection, topic: TopicRow, chore: str) -> None:
    """Note that a chore ended without a failure."""
    connection.execute(
        "INSERT INTO chores (topic_id, chore, ended_at) VALUES (%s, %s, now()) ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET ended_at = now(), failures = 0, failed_at = NULL, error = NULL",
        (topic.id, chore),
    )


def note_failed(connection: Connection, topic: TopicRow, chore: str, error: str) -> None:
    """Note why a chore failed."""
    connection.execute(
        "INSERT INTO chores (topic_id, chore, failures, failed_at, error) VALUES (%s, %s, 1, now(), %s)"
        " ON CONFLICT (topic_id, chore)"
        " DO UPDATE SET failures = chores.failures + 1, failed_at = now(), error = excluded.error",
        (topic.id, chore, error.replace("\x00", "\N{REPLACEMENT CHARACTER}")),
    )


def commits_since(connection: Connection, topic: TopicRow, cursor: int, *, most: int) -> NumberedCommits | None:
    """Return the ranges of the next commits after `cursor`, at most `most` commits. None if there are none.

    A range that a later rewrite replaced is not in the answer: its successor has another number.
    """
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
    """Number committed rows that have no number, in the order of their commits."""
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
