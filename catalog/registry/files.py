"""Translated ranges in `files`, from fence to table (docs/concepts.md, steps 3 to 5). Idempotent.

Accepted ranges of a partition form a chain without gaps or overlaps, by the fence under the topic's row lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from catalog.errors import RegistryError
from catalog.iceberg.settle import Settled
from catalog.model import FileState, PartitionOffset, Staged, StateCount, TopicRow, TranslatedRange, new_id
from catalog.ranges.fence import fence
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import account_rows, chores, file_rows, topics
from catalog.registry.postgres import Connection


def stage(
    connection: Connection,
    topic: TopicRow,
    ranges: Sequence[TranslatedRange],
    *,
    table_offsets: Mapping[int, PartitionOffset],
) -> Staged:
    """The fence: accept ranges at their partition's end, in order; record the rest as rejected.

    The end is the last accepted range's or the table's, whichever is greater; else the first missing range's start;
    else any.
    """
    topics.lock(connection, topic)
    states, ends, first_missing = _before(connection, topic, ranges)
    for partition, reached in table_offsets.items():
        if partition not in ends or ends[partition].next_offset < reached.next_offset:
            ends[partition] = reached
    ends = first_missing | ends
    fenced = fence((range_ for range_ in ranges if range_.id not in states), ends)
    fresh = {entry.id for entry in fenced.accepted}
    accepted: list[TranslatedRange] = []
    rejected: list[TranslatedRange] = []
    rows: list[dict[str, Any]] = []
    for range_ in sorted(ranges, key=lambda entry: (entry.partition, entry.start_offset, entry.id)):
        if range_.id in states:
            (rejected if states[range_.id] is FileState.REJECTED else accepted).append(range_)
        elif range_.id in fresh:
            accepted.append(range_)
            rows += file_rows.rows_of(topic, StoredRange.of(range_), FileState.UPLOADED)
        else:
            rejected.append(range_)
            rows += file_rows.rows_of(topic, StoredRange.of(range_), FileState.REJECTED, fenced.rejected[range_.id])
    file_rows.insert(connection, rows)
    return Staged(accepted=tuple(accepted), rejected=tuple(rejected))


def keep_rejected(connection: Connection, topic: TopicRow, ranges: Sequence[TranslatedRange], *, reason: str) -> None:
    """Record unstaged ranges as rejected, to identify their files."""
    topics.lock(connection, topic)
    existing = _states(connection, [range_.id for range_ in ranges])
    rows = [
        row
        for range_ in ranges
        if range_.id not in existing
        for row in file_rows.rows_of(topic, StoredRange.of(range_), FileState.REJECTED, reason)
    ]
    file_rows.insert(connection, rows)


def staged_ends(connection: Connection, topic: TopicRow) -> dict[int, PartitionOffset]:
    """Call it before loading the table, which then has ranges committed in between."""
    return _ends(connection, topic, "state = 'uploaded'")


def accepted_ends(connection: Connection, topic: TopicRow) -> dict[int, PartitionOffset]:
    return _ends(connection, topic, "state IN ('uploaded', 'committed')")


def committed_ends(connection: Connection, topic: TopicRow) -> dict[int, PartitionOffset]:
    """A table loaded later reaches at least as far."""
    return _ends(
        connection, topic, "state IN ('uploaded', 'committed') AND state = 'committed'"
    )  # the index covers both states


def last_version(connection: Connection, topic: TopicRow) -> int | None:
    """The newest schema version of the partitions' last records."""
    row = connection.execute(
        "SELECT max(schema_version) FROM (SELECT DISTINCT ON (partition) schema_version FROM files WHERE topic_id = %s"
        " AND state IN ('uploaded', 'committed') AND rows > 0 ORDER BY partition, end_offset DESC) AS last",
        (topic.id,),
    ).fetchone()
    return None if row is None else row[0]


def pending(connection: Connection, topic: TopicRow) -> tuple[TranslatedRange, ...]:
    """Raises RegistryError if rows are missing."""
    uploaded = tuple(file_rows.held(connection, topic, "state = 'uploaded'"))
    for loaded in uploaded:
        if not loaded.is_whole:
            raise RegistryError(
                "the registry has only some files of a range that waits for its commit: somebody changed its database."
                " Restore it from a backup",
                topic=topic.topic,
                partition=loaded.range.partition,
                offsets=loaded.range.span,
                files=list(loaded.range.paths),
            )
    return tuple(loaded.range.translated() for loaded in uploaded)


def topics_with_staged(connection: Connection, topics: Sequence[TopicRow]) -> frozenset[int]:
    """Ids of topics with ranges that wait, or miss an object."""
    rows = connection.execute(
        "SELECT topic_id FROM files WHERE topic_id = ANY(%(topics)s) AND state = 'uploaded'"
        " UNION SELECT topic_id FROM files WHERE topic_id = ANY(%(topics)s) AND missing",
        {"topics": [topic.id for topic in topics]},
    )
    return frozenset(number for (number,) in rows)


def committed(connection: Connection, topic: TopicRow) -> tuple[StoredRange, ...]:
    return tuple(loaded.range for loaded in file_rows.held(connection, topic, "state = 'committed'"))


def missing(connection: Connection, topic: TopicRow) -> tuple[TranslatedRange, ...]:
    """Complete ranges rejected for a missing object."""
    return tuple(
        loaded.range.translated() for loaded in file_rows.held(connection, topic, "missing") if loaded.is_whole
    )


def load_all(connection: Connection, topic: TopicRow, range_ids: Sequence[str]) -> tuple[TranslatedRange, ...]:
    """In the order of ids. Raises RegistryError if one is missing."""
    return tuple(range_.translated() for range_ in file_rows.load(connection, topic, range_ids))


def confirm(connection: Connection, topic: TopicRow, range_ids: Sequence[str], *, commit_id: str | None) -> None:
    """The first commit stays. `commit_id` is None if the snapshot has expired."""
    topics.lock(connection, topic)
    waiting = f"topic_id = %(topic)s AND {file_rows.IDS} AND state = 'uploaded'"
    done = connection.execute(
        f"{chores.numbered(waiting)}UPDATE files SET state = 'committed', commit_id = %(commit)s,"  # noqa: S608 - no input
        f" committed_at = now(), commit_number = (SELECT last FROM numbered) WHERE {waiting}"
        " RETURNING coalesce(range_id, id)",
        {"commit": commit_id, "topic": topic.id, "ids": list(range_ids)},
    )
    confirmed = sorted({range_id for (range_id,) in done})
    if confirmed:
        account_rows.record(connection, topic, file_rows.load(connection, topic, confirmed))


def reject(connection: Connection, topic: TopicRow, range_ids: Sequence[str], *, reason: str) -> None:
    """Later ranges of the partition can't be committed either."""
    topics.lock(connection, topic)
    connection.execute(
        "UPDATE files SET state = 'rejected', reason = %(reason)s"  # noqa: S608 - no input
        f" WHERE topic_id = %(topic)s AND {file_rows.IDS} AND state = 'uploaded'",
        {"reason": reason, "topic": topic.id, "ids": list(range_ids)},
    )


def record(connection: Connection, topic: TopicRow, settled: Settled) -> None:
    landed, refused = defaultdict(list), defaultdict(list)
    for landing in settled.landed:
        landed[landing.commit_id].append(landing.range.id)
    for refusal in settled.refused:
        refused[refusal.reason].append(refusal.range.id)
    for commit_id, range_ids in landed.items():
        confirm(connection, topic, range_ids, commit_id=commit_id)
    for reason, range_ids in refused.items():
        reject(connection, topic, range_ids, reason=reason)


def counts(connection: Connection, topic: TopicRow) -> dict[FileState, StateCount]:
    """Has every state."""
    cursor = connection.execute(
        "SELECT state, count(*) FILTER (WHERE part = 0), sum(rows)::bigint, sum(size_bytes)::bigint,"
        " count(*) FILTER (WHERE size_bytes > 0) FROM files WHERE topic_id = %s GROUP BY state",
        (topic.id,),
    )
    counted = {
        FileState(state): StateCount(ranges=ranges, rows=rows, size_bytes=size, files=files)
        for state, ranges, rows, size, files in cursor
    }
    return {state: counted.get(state, StateCount(ranges=0, rows=0, size_bytes=0)) for state in FileState}


def lost_offsets(connection: Connection, topic: TopicRow) -> int:
    """The number accepted by `--accept-gap` and `--accept-unreadable`."""
    row = connection.execute(
        "SELECT coalesce(sum(end_offset - start_offset), 0)::bigint FROM files"
        " WHERE topic_id = %s AND lost AND state <> 'rejected'",
        (topic.id,),
    ).fetchone()
    return int(row[0]) if row else 0


def lost_ranges(connection: Connection, topic: TopicRow) -> dict[int, list[tuple[int, int]]]:
    ranges: dict[int, list[tuple[int, int]]] = {}
    for partition, start, end in connection.execute(
        "SELECT partition, start_offset, end_offset FROM files"
        " WHERE topic_id = %s AND lost AND state <> 'rejected' ORDER BY partition, start_offset",
        (topic.id,),
    ):
        ranges.setdefault(partition, []).append((start, end))
    return ranges


def _ends(connection: Connection, topic: TopicRow, condition: str) -> dict[int, PartitionOffset]:
    # The condition is a literal, not a parameter, because the indexes cover only rows in some states. The recursion
    # goes from partition to partition by the index, so it doesn't read the other ranges of a partition.
    last = (
        f"SELECT partition, end_offset, leader_epoch FROM files WHERE topic_id = %(topic)s AND {condition}"  # noqa: S608 - no input
        "{} ORDER BY partition DESC, start_offset DESC LIMIT 1"
    )
    rows = connection.execute(
        f"WITH RECURSIVE ends AS (({last.format('')}) UNION ALL SELECT next.* FROM ends,"  # noqa: S608 - as above
        f" LATERAL ({last.format(' AND partition < ends.partition')}) AS next) SELECT * FROM ends",
        {"topic": topic.id},
    )
    return {partition: PartitionOffset(next_offset=end, leader_epoch=epoch) for partition, end, epoch in rows}


def _states(connection: Connection, range_ids: list[str]) -> dict[str, FileState]:
    rows = connection.execute("SELECT id, state FROM files WHERE id = ANY(%s)", (range_ids,))
    return {range_id: FileState(state) for range_id, state in rows}


_NEWEST: Final = """
SELECT max(id COLLATE "C") FROM (
    SELECT commit_id FROM files WHERE topic_id = %(topic)s
    UNION ALL SELECT replaced_by FROM files WHERE topic_id = %(topic)s
    UNION ALL SELECT commit_id FROM account WHERE topic_id = %(topic)s
    UNION ALL SELECT commit_id FROM first_offsets WHERE topic_id = %(topic)s
    UNION ALL SELECT commit_id FROM erased_offsets WHERE topic_id = %(topic)s
    UNION ALL SELECT name FROM metadata WHERE topic_id = %(topic)s AND key IN ('rewrite', 'rebuilt')
) AS known(id) WHERE id ~ '^[0-9A-HJKMNP-TV-Z]{26}$'
"""


def newest_commit(connection: Connection, topic: TopicRow) -> str | None:
    """The newest known commit id, or a rebuild's."""
    (newest,) = connection.execute(_NEWEST, {"topic": topic.id}).fetchone() or (None,)
    return None if newest is None else str(newest)


def note_rebuilt(connection: Connection, topic: TopicRow) -> None:
    """The registry has everything of table and journal."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, 'rebuilt', %s, '{}')", (topic.id, new_id())
    )


_BEFORE: Final = """
SELECT 'known', id, state, NULL::integer, NULL::bigint, NULL::integer FROM files WHERE id = ANY(%(ids)s)
UNION ALL SELECT 'end', NULL, NULL, wanted, last.end_offset, last.leader_epoch
FROM unnest(%(partitions)s::integer[]) AS wanted, LATERAL (
    SELECT end_offset, leader_epoch FROM files WHERE topic_id = %(topic)s AND partition = wanted
    AND state IN ('uploaded', 'committed') ORDER BY start_offset DESC LIMIT 1) AS last
UNION ALL SELECT 'missing', NULL, NULL, partition, min(start_offset), NULL FROM files
WHERE topic_id = %(topic)s AND missing GROUP BY partition
"""


def _before(
    connection: Connection, topic: TopicRow, ranges: Sequence[TranslatedRange]
) -> tuple[dict[str, FileState], dict[int, PartitionOffset], dict[int, PartitionOffset]]:
    states: dict[str, FileState] = {}
    ends: dict[int, PartitionOffset] = {}
    first_missing: dict[int, PartitionOffset] = {}
    values = {
        "topic": topic.id,
        "ids": [range_.id for range_ in ranges],
        "partitions": sorted({range_.partition for range_ in ranges}),
    }
    for kind, range_id, state, partition, offset, epoch in connection.execute(_BEFORE, values):
        match kind:
            case "known":
                states[range_id] = FileState(state)
            case "end":
                ends[partition] = PartitionOffset(next_offset=offset, leader_epoch=epoch)
            case _:
                first_missing[partition] = PartitionOffset(next_offset=offset)
    return states, ends, first_missing
