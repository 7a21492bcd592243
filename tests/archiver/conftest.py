"""Fixtures: archived rows, in every column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from schema_mapping import RawMapping, RowMapping
from schema_mapping.columns.fixed import KAFKA_FIELD
from tests.support.archive.lake import Lake

KEPT = {
    "write.metadata.metrics.default": "none",
    **{
        f"write.metadata.metrics.column.kafka.{name}": "full"
        for name in ("partition", "offset", "event_timestamp", "ingest_timestamp", "batch_start")
    },
}
RAW_ROWS = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Times in ms."""

    offset: int
    key: bytes | None = None
    value: bytes | None = b""
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    partition: int = 0
    timestamp: int | None = 1_700_000_000_000
    timestamp_type: int = 0
    append_timestamp: int | None = None
    raw_timestamp: int | None = None
    batch_start: int = 0
    schema_version: int = 1


@dataclass(frozen=True, slots=True)
class Archive:
    rows: RowMapping = RAW_ROWS
    properties: dict[str, str] = field(default_factory=lambda: dict(KEPT))
    row: type[Row] = Row

    @property
    def schema(self) -> pa.Schema:
        return self.rows.arrow_schema

    @property
    def mapping(self) -> str:
        return json.dumps(self.rows.to_json(), separators=(",", ":"))

    def batch(self, rows: Iterable[Row]) -> pa.RecordBatch:
        plain = [_plain(row) for row in rows]
        return pa.RecordBatch.from_pylist(plain, schema=self.schema)


def _plain(row: Row) -> dict[str, object]:
    kafka = dict.fromkeys(column.name for column in KAFKA_FIELD.type) | {
        "partition": row.partition,
        "offset": row.offset,
        "event_timestamp": None if row.timestamp is None else row.timestamp * 1000,
        "ingest_timestamp": 1_700_000_000_000_000,
        "batch_start": row.batch_start,
        "batch_end": row.batch_start + 99,
        "timestamp_type": row.timestamp_type,
        "append_timestamp": None if row.append_timestamp is None else row.append_timestamp * 1000,
        "raw_timestamp": row.raw_timestamp,
        "schema_version": row.schema_version,
    }
    return {
        "key": None if row.key is None else {"__raw__": row.key},
        "val": None if row.value is None else {"__raw__": row.value},
        "headers": [_header(key, value) for key, value in row.headers],
        "kafka": kafka,
    }


def _header(key: bytes, value: bytes | None) -> dict[str, object]:
    try:
        return {"key": key.decode(), "value": value, "__raw_key__": None}
    except UnicodeDecodeError:
        return {"key": key.decode("utf-8", "replace"), "value": value, "__raw_key__": key}


@pytest.fixture
def archive() -> Archive:
    return Archive()


@pytest.fixture
def lake(tmp_path: Path, archive: Archive) -> Lake:
    return Lake(tmp_path / "lake", archive.rows)


@pytest.fixture
def filled(lake: Lake, archive: Archive) -> Lake:
    odd = archive.row(
        offset=0, key=None, value=b"\x00\xff", headers=[("ä".encode(), b"1"), (b"\xff", None)], timestamp=None
    )
    rest = [archive.row(offset=i, key=b"k", value=b"v%d" % i, timestamp=1_000 * i) for i in range(1, 10)]
    lake.add(archive.rows, archive.batch([odd, *rest]), 0, 12)
    rows = [archive.row(offset=i, partition=1, timestamp=500 * i) for i in range(4)]
    lake.add(archive.rows, archive.batch(rows), 0, 4, partition=1)
    return lake
