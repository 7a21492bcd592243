"""Staged ranges with missing objects: rejected, and accepted again when these are back.

The fence applies: the partition must still end at the range's start. Idempotent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from catalog.model import PartitionOffset, TopicRow, TranslatedRange
from catalog.registry import file_rows, files, topics
from catalog.registry.postgres import Connection


def reject(connection: Connection, topic: TopicRow, range_ids: Sequence[str], *, reason: str) -> None:
    """Later ranges of their partitions, too.

    A later one could never be committed, or would be taken for an unknown partition's first.
    """
    topics.lock(connection, topic)
    connection.execute(
        "UPDATE files SET state = 'rejected', missing = true, reason = %s FROM ("
        "  SELECT partition, min(start_offset) AS start_offset FROM files"
        "  WHERE topic_id = %s AND id = ANY(%s) AND state = 'uploaded' GROUP BY partition) AS first"
        " WHERE topic_id = %s AND state = 'uploaded'"
        " AND files.partition = first.partition AND files.start_offset >= first.start_offset",
        (reason, topic.id, list(range_ids), topic.id),
    )


def load(
    connection: Connection, topic: TopicRow, *, table_offsets: Mapping[int, PartitionOffset] | None = None
) -> tuple[TranslatedRange, ...]:
    """Missing ranges with free offsets, sorted."""
    ranges = files.missing(connection, topic)
    if not ranges:
        return ()
    ends = _ends(connection, topic, table_offsets or {})
    return tuple(range_ for range_ in ranges if range_.start_offset >= ends.get(range_.partition, 0))


def take_up(
    connection: Connection,
    topic: TopicRow,
    range_ids: Collection[str],
    *,
    table_offsets: Mapping[int, PartitionOffset],
) -> tuple[TranslatedRange, ...]:
    """Accept ranges that continue their partitions. Unknown partitions begin with the first."""
    topics.lock(connection, topic)
    taken: list[TranslatedRange] = []
    ends = _ends(connection, topic, table_offsets)
    missing = load(connection, topic, table_offsets=table_offsets)
    for partition, group in groupby(missing, key=lambda entry: entry.partition):
        ranges = tuple(group)
        end = ends.get(partition, ranges[0].start_offset)
        for range_ in sorted(ranges, key=lambda entry: (entry.start_offset, -entry.end_offset)):
            if range_.start_offset == end and range_.id in range_ids:
                taken.append(range_)
                end = range_.end_offset
    connection.execute(
        "UPDATE files SET state = 'uploaded', missing = false, reason = NULL"  # noqa: S608 - no input
        f" WHERE topic_id = %(topic)s AND missing AND {file_rows.IDS}",
        {"topic": topic.id, "ids": [entry.id for entry in taken]},
    )
    return tuple(taken)


def first_offsets(
    missing: Sequence[TranslatedRange], *known: Mapping[int, PartitionOffset]
) -> dict[int, PartitionOffset]:
    starts: dict[int, int] = {}
    for range_ in missing:
        starts[range_.partition] = min(range_.start_offset, starts.get(range_.partition, range_.start_offset))
    return {
        partition: PartitionOffset(next_offset=start)
        for partition, start in starts.items()
        if not any(partition in offsets for offsets in known)
    }


def _ends(connection: Connection, topic: TopicRow, table_offsets: Mapping[int, PartitionOffset]) -> dict[int, int]:
    ends = {partition: end.next_offset for partition, end in files.accepted_ends(connection, topic).items()}
    for partition, reached in table_offsets.items():
        ends[partition] = max(ends.get(partition, 0), reached.next_offset)
    return ends
