"""The first offset of each partition, advanced by `archiver expire`, never back.

Ranges below are summed up as one row of `files` per partition. Idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from catalog.model import TopicRow
from catalog.ranges.replaced_files import removal_reason
from catalog.ranges.retirement import is_left_below, retired_below, summed_up
from catalog.ranges.rewrite import Rewrite
from catalog.registry import file_rows
from catalog.registry.postgres import Connection

_JOURNALED: Final = "journal"
_UNPROVEN: Final = "rebuild"
"""Stored as the commit of first offsets that a rebuild took from the table's property."""


def load(connection: Connection, topic: TopicRow) -> dict[int, int]:
    rows = connection.execute("SELECT partition, first_offset FROM first_offsets WHERE topic_id = %s", (topic.id,))
    return dict(rows.fetchall())


_MOVED: Final = """
SELECT partition, max(first_offset) FROM (
    SELECT partition, first_offset FROM first_offsets WHERE topic_id = %(topic)s AND commit_id <> %(unproven)s
    UNION ALL SELECT partition::integer, first_offset::bigint
    FROM metadata, jsonb_each_text(value->'first_offsets') AS rewrite(partition, first_offset)
    WHERE topic_id = %(topic)s AND key = 'rewrite' AND NOT deleted
) AS known GROUP BY partition
"""


def proven(connection: Connection, topic: TopicRow, claimed: Mapping[int, int]) -> dict[int, int]:
    """Bound a table's claim by rewrites, also unsettled ones: other engines can change the property.

    Load the table before, so that its rewrites are known.
    """
    if not claimed:
        return {}
    moved: dict[int, int] = dict(connection.execute(_MOVED, {"topic": topic.id, "unproven": _UNPROVEN}).fetchall())
    return {partition: min(offset, moved[partition]) for partition, offset in claimed.items() if partition in moved}


def move(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Retire and sum up the ranges below."""
    for partition, offset in sorted(rewrite.first_offsets.items()):
        _note(connection, topic, partition, offset, rewrite.commit_id)
        left = file_rows.held(
            connection,
            topic,
            "state = 'committed' AND partition = %(partition)s AND end_offset <= %(offset)s"
            " AND (path IS NOT NULL OR coalesce(expected_rows, rows) > 0)",
            partition=partition,
            offset=offset,
        )
        for loaded in tuple(left):
            if not is_left_below(loaded.range, offset):
                continue
            connection.execute(
                "UPDATE files SET state = 'replaced', reason = %(reason)s, replaced_by = %(commit)s, part = 0,"  # noqa: S608 - no input
                f" parts = 1, range_id = NULL WHERE topic_id = %(topic)s AND {file_rows.IDS}",
                {
                    "reason": removal_reason(rewrite),
                    "commit": rewrite.commit_id,
                    "topic": topic.id,
                    "ids": [loaded.range.id],
                },
            )
            connection.execute("DELETE FROM files WHERE id = %s AND path IS NULL", (loaded.range.id,))
            file_rows.put_committed(connection, topic, [retired_below(loaded.range, rewrite.commit_id)])
        _sum_up(connection, topic, partition, offset)


def restore(connection: Connection, topic: TopicRow, journaled: Mapping[int, int], claimed: Mapping[int, int]) -> None:
    """Store the journal's, and higher ones that only the table claims."""
    for partition, offset in sorted(journaled.items()):
        _note(connection, topic, partition, offset, _JOURNALED)
    for partition, offset in sorted(claimed.items()):
        _note(connection, topic, partition, offset, _UNPROVEN)


def _note(connection: Connection, topic: TopicRow, partition: int, offset: int, commit_id: str) -> None:
    connection.execute(
        "INSERT INTO first_offsets (topic_id, partition, first_offset, commit_id) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, partition) DO UPDATE SET first_offset = excluded.first_offset,"
        " commit_id = excluded.commit_id, moved_at = now() WHERE first_offsets.first_offset < excluded.first_offset"
        " OR (first_offsets.first_offset = excluded.first_offset AND first_offsets.commit_id = %s)",
        (topic.id, partition, offset, commit_id, _UNPROVEN),
    )


def _sum_up(connection: Connection, topic: TopicRow, partition: int, offset: int) -> None:
    empty = file_rows.held(
        connection,
        topic,
        "state = 'committed' AND partition = %(partition)s AND end_offset <= %(offset)s AND path IS NULL AND NOT lost"
        " AND coalesce(expected_rows, rows) = 0 AND parts = 1",
        partition=partition,
        offset=offset,
    )
    ranges = {loaded.range.id: loaded.range for loaded in empty}
    made = {merged.id: merged for merged in summed_up(ranges.values(), {partition: offset})}
    connection.execute("DELETE FROM files WHERE id = ANY(%s)", ([range_ for range_ in ranges if range_ not in made],))
    for range_id, merged in made.items():
        if merged != ranges[range_id]:
            (file,) = merged.files
            connection.execute(
                "UPDATE files SET end_offset = %s, leader_epoch = %s, erased_rows = %s, lost_rows = %s,"
                " retired_rows = %s, slim = true WHERE id = %s",
                (merged.end_offset, merged.leader_epoch, file.erased, file.lost, file.retired, range_id),
            )
