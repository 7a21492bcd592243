"""Overviews of many topics at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.model import FileState, PartitionOffset, StateCount, TopicRow
from catalog.ranges.holes import GoneRows
from catalog.recognition import Recognition
from catalog.registry.postgres import Connection

_NO_RANGES = StateCount(ranges=0, rows=0, size_bytes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """`staged_ends` are of waiting ranges, `erasures` open.

    `recognition` is of committed records, without `uncounted_rows` of older archivers.
    """

    staged_ends: Mapping[int, PartitionOffset] = field(default_factory=dict)
    counts: Mapping[FileState, StateCount] = field(default_factory=lambda: dict.fromkeys(FileState, _NO_RANGES))
    lost_offsets: int = 0
    gone: GoneRows = field(default_factory=GoneRows)
    has_missing: bool = False
    recognition: Recognition = field(default_factory=Recognition)
    uncounted_rows: int = 0
    holds: int = 0
    erasures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def of_topics(connection: Connection, topics: Sequence[TopicRow]) -> dict[int, TopicOverview]:
    """Call it before loading tables, which then have ranges committed in between."""
    ids = [topic.id for topic in topics]
    staged, counts = _staged_ends(connection, ids), _counts(connection, ids)
    lost, gone, fits = _lost_offsets(connection, ids), _gone(connection, ids), _recognition(connection, ids)
    missing = connection.execute("SELECT DISTINCT topic_id FROM files WHERE topic_id = ANY(%s) AND missing", (ids,))
    with_missing = {topic_id for (topic_id,) in missing}
    rows = connection.execute(
        "SELECT topic_id, count(*) FROM holds WHERE topic_id = ANY(%s) AND released_at IS NULL GROUP BY topic_id",
        (ids,),
    )
    holds: dict[int, int] = dict(rows.fetchall())
    erasures = _erasures(connection, ids)
    return {
        number: TopicOverview(
            staged_ends=staged[number],
            counts={state: counts[number].get(state, _NO_RANGES) for state in FileState},
            lost_offsets=lost.get(number, 0),
            gone=gone.get(number, (GoneRows(), 0))[0],
            has_missing=number in with_missing,
            recognition=fits.get(number, Recognition()),
            uncounted_rows=gone.get(number, (GoneRows(), 0))[1],
            holds=holds.get(number, 0),
            erasures=erasures[number],
        )
        for number in ids
    }


def _erasures(connection: Connection, ids: list[int]) -> defaultdict[int, dict[str, dict[str, Any]]]:
    rows = connection.execute(
        "SELECT topic_id, id, value FROM erasures WHERE topic_id = ANY(%s) AND finished_at IS NULL ORDER BY id", (ids,)
    )
    erasures = defaultdict[int, dict[str, dict[str, Any]]](dict)
    for topic_id, erasure_id, value in rows:
        erasures[topic_id][erasure_id] = value
    return erasures


def _staged_ends(connection: Connection, ids: list[int]) -> defaultdict[int, dict[int, PartitionOffset]]:
    rows = connection.execute(
        "SELECT DISTINCT ON (topic_id, partition) topic_id, partition, end_offset, leader_epoch FROM files"
        " WHERE topic_id = ANY(%s) AND state = 'uploaded' ORDER BY topic_id, partition, start_offset DESC",
        (ids,),
    )
    ends = defaultdict[int, dict[int, PartitionOffset]](dict)
    for topic_id, partition, end, epoch in rows:
        ends[topic_id][partition] = PartitionOffset(next_offset=end, leader_epoch=epoch)
    return ends


def _counts(connection: Connection, ids: list[int]) -> defaultdict[int, dict[FileState, StateCount]]:
    cursor = connection.execute(
        "SELECT topic_id, state, count(*) FILTER (WHERE part = 0), sum(rows)::bigint, sum(size_bytes)::bigint,"
        " count(*) FILTER (WHERE size_bytes > 0) FROM files WHERE topic_id = ANY(%s) GROUP BY topic_id, state",
        (ids,),
    )
    counts = defaultdict[int, dict[FileState, StateCount]](dict)
    for topic_id, state, ranges, rows, size, files in cursor:
        counts[topic_id][FileState(state)] = StateCount(ranges=ranges, rows=rows, size_bytes=size, files=files)
    return counts


def _lost_offsets(connection: Connection, ids: list[int]) -> dict[int, int]:
    rows = connection.execute(
        "SELECT topic_id, sum(end_offset - start_offset)::bigint FROM files"
        " WHERE topic_id = ANY(%s) AND lost AND state <> 'rejected' GROUP BY topic_id",
        (ids,),
    )
    return dict(rows.fetchall())


def _gone(connection: Connection, ids: list[int]) -> dict[int, tuple[GoneRows, int]]:
    rows = connection.execute(
        "SELECT topic_id, sum(erased_rows)::bigint, sum(lost_rows)::bigint, sum(retired_rows)::bigint,"
        " coalesce(sum(rows) FILTER (WHERE recognition IS NULL AND size_bytes > 0), 0)::bigint"
        " FROM files WHERE topic_id = ANY(%s) AND state = 'committed' GROUP BY topic_id",
        (ids,),
    )
    return {
        topic_id: (GoneRows(erased=erased, lost=lost, retired=retired), uncounted)
        for topic_id, erased, lost, retired, uncounted in rows
    }


def _recognition(connection: Connection, ids: list[int]) -> dict[int, Recognition]:
    rows = connection.execute(
        "SELECT topic_id, jsonb_object_agg(part, counts) FROM ("
        "  SELECT topic_id, part, jsonb_object_agg(name, number) AS counts FROM ("
        "    SELECT topic_id, parts.key AS part, counts.key AS name, sum(counts.value::bigint) AS number FROM files,"
        "      LATERAL jsonb_each(recognition) AS parts, LATERAL jsonb_each_text(parts.value) AS counts"
        "    WHERE topic_id = ANY(%s) AND state = 'committed' GROUP BY 1, 2, 3) AS summed"
        "  GROUP BY 1, 2) AS by_part GROUP BY 1",
        (ids,),
    )
    return {topic_id: Recognition.from_json(counts) for topic_id, counts in rows}
