"""Ranges as rows of `files`, one per file or one without a file, all in the same state.

A range is complete only with all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from psycopg.types.json import Jsonb

from catalog.digests import DIGEST_ALGORITHM
from catalog.errors import RegistryError
from catalog.model import DataFileInfo, FileState, TopicRow, recognized
from catalog.ranges.regrouping import lies_elsewhere
from catalog.ranges.rewrite import RewriteGroup
from catalog.ranges.stored_ranges import StoredFile, StoredRange
from catalog.registry.postgres import Connection

_ROWS: Final = """
SELECT coalesce(range_id, id), id, partition, start_offset, end_offset, schema_version, leader_epoch, file, created_ms,
       lost, parts, rows, digest, coalesce(expected_rows, rows), commit_id, erased_rows, lost_rows, retired_rows,
       recognition
FROM files WHERE topic_id = %(topic)s AND """
_IN_ORDER: Final = " ORDER BY partition, start_offset, 1, part"

INSERT: Final = """
INSERT INTO files (id, topic_id, range_id, part, parts, partition, start_offset, end_offset, schema_version,
                   leader_epoch, state, path, rows, size_bytes, raw_values, min_timestamp, max_timestamp, digest,
                   digest_algorithm, file, created_ms, reason, lost, commit_id, committed_at, expected_rows,
                   erased_rows, lost_rows, retired_rows, recognition)
VALUES (%(id)s, %(topic_id)s, %(range_id)s, %(part)s, %(parts)s, %(partition)s, %(start_offset)s, %(end_offset)s,
        %(schema_version)s, %(leader_epoch)s, %(state)s, %(path)s, %(rows)s, %(size_bytes)s, %(raw_values)s,
        %(min_timestamp)s, %(max_timestamp)s, %(digest)s, %(digest_algorithm)s, %(file)s, %(created_ms)s, %(reason)s,
        %(lost)s, %(commit_id)s, CASE WHEN %(state)s = 'committed' THEN now() END,
        nullif(%(expected)s::bigint, %(rows)s), %(erased)s, %(lost_rows)s, %(retired)s, %(recognition)s)
"""

_KEEP: Final = """
UPDATE files SET state = 'committed', committed_at = coalesce(committed_at, now()), range_id = %(range_id)s,
    part = %(part)s, parts = %(parts)s, leader_epoch = %(leader_epoch)s,
    expected_rows = nullif(%(expected)s::bigint, rows), erased_rows = %(erased)s, lost_rows = %(lost_rows)s,
    retired_rows = %(retired)s
WHERE id = %(id)s
"""

IS_DATA: Final = "right(path, 5) <> '.avro'"
"""The SQL condition for data files. Erasures also note manifests that wait for their deletion: they have no rows."""

_ACCEPTED: Final = "state IN ('uploaded', 'committed')"

IDS: Final = "(id = ANY(%(ids)s) OR range_id = ANY(%(ids)s))"
"""The SQL condition for the rows of ranges with given ids."""


def insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if len(rows) == 1:
        connection.execute(INSERT, rows[0])
    elif rows:
        with connection.cursor() as cursor:
            cursor.executemany(INSERT, rows)


def load(connection: Connection, topic: TopicRow, range_ids: Sequence[str]) -> tuple[StoredRange, ...]:
    """In the order of ids. Raises RegistryError if one is missing."""
    ranges = {loaded.range.id: loaded.range for loaded in held(connection, topic, IDS, ids=list(range_ids))}
    for range_id in range_ids:
        if range_id not in ranges:
            raise RegistryError("the registry has no such range: was its database replaced?", range=range_id)
    return tuple(ranges[range_id] for range_id in range_ids)


def in_files(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> tuple[StoredRange, ...]:
    """With all of their files."""
    rows = connection.execute(
        f"SELECT DISTINCT coalesce(range_id, id) FROM files WHERE topic_id = %s AND path = ANY(%s) AND {_ACCEPTED}",  # noqa: S608 - no input
        (topic.id, list(paths)),
    ).fetchall()
    return tuple(
        loaded.range for loaded in held(connection, topic, f"{_ACCEPTED} AND {IDS}", ids=[row[0] for row in rows])
    )


def of_group(connection: Connection, topic: TopicRow, group: RewriteGroup) -> tuple[StoredRange, ...]:
    """In its files, or without a file inside it."""
    held_in = in_files(connection, topic, group.known_paths)
    spans = group.all_spans
    without = held(
        connection,
        topic,
        f"{_ACCEPTED} AND path IS NULL AND expected_rows > 0 AND EXISTS (SELECT FROM"
        " unnest(%(partitions)s::integer[], %(starts)s::bigint[], %(ends)s::bigint[]) AS span(p, low, high)"
        " WHERE p = partition AND start_offset < high AND end_offset > low)",
        partitions=[span.partition for span in spans],
        starts=[span.start_offset for span in spans],
        ends=[span.end_offset for span in spans],
    )
    return (*held_in, *(loaded.range for loaded in without if lies_elsewhere(loaded.range, group)))


@dataclass(frozen=True, slots=True)
class Loaded:
    """`is_whole` if no row is missing."""

    range: StoredRange
    is_whole: bool


def held(connection: Connection, topic: TopicRow, condition: str, **values: Any) -> Iterator[Loaded]:
    cursor = connection.execute(f"{_ROWS}{condition}{_IN_ORDER}", {"topic": topic.id, **values})
    for _, rows in groupby(cursor, key=lambda row: row[0]):
        yield _loaded(topic, list(rows))


def put_committed(
    connection: Connection, topic: TopicRow, ranges: Iterable[StoredRange], *, known: Collection[str] = ()
) -> None:
    """The caller has made room. Rows in `known` are updated: a rewrite left these files."""
    for row in _sized(ranges, topic, set()):
        connection.execute(_KEEP if row["id"] in known else INSERT, row)


def restore_committed(connection: Connection, topic: TopicRow, ranges: Iterable[StoredRange]) -> int:
    """Add missing ranges; return their number. Partly known ranges stay."""
    seen: set[str] = set()
    added = 0
    for range_ in ranges:
        if not _is_known(connection, topic, range_):
            for row in _sized((range_,), topic, seen):
                connection.execute(INSERT, row)
            added += 1
    return added


COUNTED_BEFORE: Final[dict[str, Any]] = {"size_bytes": 0, "raw_values": 0, "recognition": None}


def _is_known(connection: Connection, topic: TopicRow, one: StoredRange) -> bool:
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM files WHERE id = ANY(%(ids)s)) OR coalesce(("
        "  SELECT end_offset > %(start)s FROM files WHERE topic_id = %(topic)s AND partition = %(partition)s"
        "  AND start_offset < %(end)s AND state IN ('uploaded', 'committed')"
        "  ORDER BY start_offset DESC LIMIT 1), false)",
        {
            "ids": [file.id for file in one.files],
            "topic": topic.id,
            "partition": one.partition,
            "start": one.start_offset,
            "end": one.end_offset,
        },
    ).fetchone()
    return bool(row and row[0])


def _loaded(topic: TopicRow, rows: Sequence[tuple[Any, ...]]) -> Loaded:
    _, _, partition, start, end, _, _, _, _, lost, parts, *_ = rows[0]
    range_ = StoredRange(
        topic=topic.topic,
        partition=partition,
        start_offset=start,
        end_offset=end,
        leader_epoch=max(row[6] for row in rows),
        created_ms=rows[0][8],
        files=tuple(map(_held_file, rows)),
        lost=lost,
    )
    return Loaded(range_, is_whole=len(rows) == parts and range_.id == rows[0][0])


def _held_file(row: tuple[Any, ...]) -> StoredFile:
    _, row_id, _, _, _, version, _, file, _, _, _, rows, digest, expected, commit_id, erased, lost, retired, fit = row
    return StoredFile(
        id=row_id,
        file=recognized(DataFileInfo.from_json(file), fit) if file else None,
        rows=rows,
        digest=digest,
        expected=expected,
        schema_version=version,
        commit_id=commit_id,
        erased=erased,
        lost=lost,
        retired=retired,
    )


def rows_of(topic: TopicRow, one: StoredRange, state: FileState, reason: str | None = None) -> list[dict[str, Any]]:
    return [
        _file_row(file)
        | {
            "topic_id": topic.id,
            "range_id": one.id if part else None,
            "part": part,
            "parts": len(one.files),
            "partition": one.partition,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
            "leader_epoch": one.leader_epoch,
            "state": state.value,
            "created_ms": one.created_ms,
            "reason": reason,
            "lost": one.lost,
        }
        for part, file in enumerate(one.files)
    ]


def _sized(ranges: Iterable[StoredRange], topic: TopicRow, seen: set[str]) -> Iterator[dict[str, Any]]:
    """Only a file's first row has its size. `seen` are counted paths."""
    for range_ in ranges:
        for row in rows_of(topic, range_, FileState.COMMITTED):
            yield row if row["path"] is None or row["path"] not in seen else row | COUNTED_BEFORE
            seen.add(row["path"])


def _file_row(held: StoredFile) -> dict[str, Any]:
    file = held.file
    return {
        "id": held.id,
        "schema_version": held.schema_version,
        "path": held.path,
        "rows": held.rows,
        "size_bytes": file.size_bytes if file else 0,
        "raw_values": file.raw_values if file else 0,
        "min_timestamp": file.min_timestamp if file else None,
        "max_timestamp": file.max_timestamp if file else None,
        "digest": held.digest,
        "digest_algorithm": DIGEST_ALGORITHM if held.digest else None,
        "file": Jsonb(file.to_json()) if file else None,
        "recognition": Jsonb(file.recognition.to_json()) if file and file.recognition else None,
        "commit_id": held.commit_id,
        "expected": held.expected,
        "erased": held.erased,
        "lost_rows": held.lost,
        "retired": held.retired,
    }
