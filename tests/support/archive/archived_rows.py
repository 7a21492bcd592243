"""Rows for an archive, and their replayed records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from archiver.archive.topic_archive import TopicArchive


def rows_of(archive: Any, offsets: Iterable[int], *, partition: int = 0) -> list[Any]:
    return [
        archive.row(
            offset=offset,
            partition=partition,
            key=None if offset % 5 == 0 else b"k%d" % offset,
            value=None if offset % 7 == 0 else b"p%d-%d" % (partition, offset) * (offset % 3),
            headers=[(b"n", b"%d" % offset), (b"\xfe", None)][: offset % 3],
            timestamp=None if offset % 11 == 0 else 1_000_000 + offset,
        )
        for offset in offsets
    ]


def expected(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "partition": row.partition,
            "offset": row.offset,
            "timestamp_type": row.timestamp_type,
            "timestamp": -1 if row.timestamp is None else row.timestamp,
            "key": row.key,
            "value": row.value,
            "headers": [{"key": key, "value": value} for key, value in row.headers],
        }
        for row in rows
    ]


def replayed(archive: TopicArchive, partition: int = 0, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
    result = []
    for batch in archive.records(partition, start, end):
        batch.validate(full=True)
        result += batch.drop_columns(["leader_epoch"]).to_pylist()
    return result


def records_of(rows: Iterable[Any], partition: int, start: int = 0, end: int = 10**9) -> list[dict[str, Any]]:
    result = [row for row in rows if row.partition == partition and start <= row.offset < end]
    return expected(sorted(result, key=lambda row: row.offset))


class KnownMapping:
    def __init__(self, *rows: Any) -> None:
        self.rows = {row.schema_version: row for row in rows}

    def row_mapping(self, version: int) -> Any:
        return self.rows.get(version)
