"""What a table has to hold by the registry's word, what was found missing of it, and what is accepted to be gone.

Columns of `files`, and a row of `metadata` under the key `checked` that remembers the last look. Functions take a
connection inside a transaction; calling one again is safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from catalog.holes import Acceptance, Checked, ExpectedRange, GoneRows
from catalog.model import TopicRow, TranslatedRange
from catalog.registry import files, topics
from catalog.registry.postgres import Connection

_KEY = "checked"
_NAME = "rows"


def expected(connection: Connection, topic: TopicRow) -> tuple[ExpectedRange, ...]:
    """The committed ranges that the table has to have rows of, by partition and offset.

    Ask before loading the table: what is committed in between is then in the table.
    """
    found = connection.execute(
        "SELECT id, partition, start_offset, end_offset, path, coalesce(expected_rows, rows), rows, digest FROM files"
        " WHERE topic_id = %s AND state = 'committed' AND path IS NOT NULL AND coalesce(expected_rows, rows) > 0"
        " ORDER BY partition, start_offset",
        (topic.id,),
    )
    return tuple(
        ExpectedRange(
            id=range_id,
            partition=partition,
            start_offset=start,
            end_offset=end,
            path=path,
            rows=rows,
            file_rows=file_rows,
            digest=digest,
        )
        for range_id, partition, start, end, path, rows, file_rows, digest in found
    )


def committed_spans(connection: Connection, topic: TopicRow, partition: int, start: int) -> tuple[tuple[int, int], ...]:
    """The offsets that committed ranges of a partition cover, with or without a file, from `start` on."""
    found = connection.execute(
        "SELECT start_offset, end_offset FROM files WHERE topic_id = %s AND partition = %s"
        " AND state IN ('uploaded', 'committed') AND end_offset > %s ORDER BY start_offset",
        (topic.id, partition, start),
    )
    return tuple(found.fetchall())


def all_committed_spans(
    connection: Connection, topic: TopicRow, starts: Mapping[int, int]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """The offsets that committed or waiting ranges cover, by partition, from these starts on."""
    return {partition: committed_spans(connection, topic, partition, start) for partition, start in starts.items()}


def gone(connection: Connection, topic: TopicRow) -> GoneRows:
    """How many archived rows the table doesn't have any more, as was accepted."""
    found = connection.execute(
        "SELECT coalesce(sum(erased_rows), 0)::bigint, coalesce(sum(lost_rows), 0)::bigint FROM files"
        " WHERE topic_id = %s AND state = 'committed'",
        (topic.id,),
    ).fetchone()
    return GoneRows(erased=found[0], lost=found[1]) if found else GoneRows()


def checked(connection: Connection, topic: TopicRow) -> Checked | None:
    """What the last look for missing rows found; None where there was none."""
    found = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND name = %s AND NOT deleted",
        (topic.id, _KEY, _NAME),
    ).fetchone()
    return None if found is None else Checked.from_json(found[0])


def note_checked(connection: Connection, topic: TopicRow, found: Checked) -> None:
    """Remember what a look for missing rows found."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE"
        " SET value = excluded.value, deleted = false, updated = now()",
        (topic.id, _KEY, _NAME, Jsonb(found.to_json())),
    )


def forget_checked(connection: Connection, topic: TopicRow) -> None:
    """Have the next look search the whole table: ranges are known to be in it that looks before knew nothing of."""
    connection.execute(
        "UPDATE metadata SET deleted = true, updated = now() WHERE topic_id = %s AND key = %s", (topic.id, _KEY)
    )


def inherit(connection: Connection, topic: TopicRow, *, old_id: str, new_id: str) -> None:
    """Have a range that takes another's place expect the rows that one expected: a rewrite excuses nothing."""
    connection.execute(
        "UPDATE files AS made SET expected_rows = nullif(coalesce(old.expected_rows, old.rows), made.rows),"
        " erased_rows = old.erased_rows, lost_rows = old.lost_rows FROM files AS old"
        " WHERE made.topic_id = %s AND made.id = %s AND old.topic_id = %s AND old.id = %s",
        (topic.id, new_id, topic.id, old_id),
    )


def record_refill(
    connection: Connection,
    topic: TopicRow,
    *,
    replaced: Mapping[str, Sequence[TranslatedRange]],
    accepted: Sequence[Acceptance],
    commit_id: str,
) -> None:
    """Keep what a refill did: ranges (by id) that came back in other files, and rows that stay gone.

    What was looked at before is forgotten.
    """
    topics.lock(connection, topic)
    for range_id, ranges in replaced.items():
        done = connection.execute(
            "UPDATE files SET state = 'replaced', reason = %s WHERE topic_id = %s AND id = %s AND state = 'committed'",
            (f"refill: commit {commit_id}", topic.id, range_id),
        )
        if done.rowcount:
            files.insert_committed(connection, topic, ranges, commit_id=commit_id)
    for each in accepted:
        connection.execute(
            "UPDATE files SET expected_rows = %s, erased_rows = erased_rows + %s, lost_rows = lost_rows + %s"
            " WHERE topic_id = %s AND id = %s AND state = 'committed' AND coalesce(expected_rows, rows) = %s",
            (
                each.left,
                each.erased,
                each.lost,
                topic.id,
                each.range_id,
                each.left + each.erased + each.lost,
            ),
        )
    forget_checked(connection, topic)
