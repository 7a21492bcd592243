"""Avro values survive evolution and rewrites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from schema_mapping import Assignment, LedgerState, RowMapping, assign
from schema_mapping.avro.schema import AvroSchema
from tests.support.archive.lake import Lake
from tests.support.schemas.strategies_avro import written

FIELDS: list[dict[str, Any]] = [
    {"name": "lines", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "paid", "type": ["null", "string", "int"]},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
]
OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *FIELDS]}
NEW = {
    "type": "record",
    "name": "Order",
    "fields": [*FIELDS, {"name": "number", "type": "long", "aliases": ["id"]}, {"name": "note", "type": "string"}],
}


def assigned() -> tuple[Assignment, Assignment]:
    first = assign(LedgerState(), value=AvroSchema.of(json.dumps(OLD)))
    return first, assign(first.state, value=AvroSchema.of(json.dumps(NEW), json.dumps(OLD)))


def writer_of(offset: int) -> int:
    return int(offset >= 20 and offset % 3 == 0)


def value_of(offset: int) -> bytes | None:
    if offset % 7 == 3:
        return (None, b"", b"\x81")[offset % 3]
    order: dict[str, Any] = {
        "lines": ["a", None][: offset % 3],
        "paid": [None, ("int", offset), ("string", "x")][offset % 3],
    }
    order |= {"local": 1_700_000_000_000 + offset, "id": offset, "number": 2**40 + offset, "note": f"n{offset}"}
    return written(OLD if offset < 20 or writer_of(offset) else NEW, order)


EXPECTED = [value_of(offset) for offset in range(40)]


def batch(archive: Any, row: RowMapping, start: int) -> pa.RecordBatch:
    offsets = range(start, start + 20)
    plain = archive.batch(
        [archive.row(offset=offset, value=value_of(offset), schema_version=row.schema_version) for offset in offsets]
    )
    values = pa.array([value_of(offset) for offset in offsets], pa.binary())
    val = row.value.decode(values, which=np.array([writer_of(offset) for offset in offsets], np.int16))
    assert val.field("__raw__").null_count >= 17
    keys = row.key.decode(pa.array([None] * 20, pa.binary()))
    return pa.RecordBatch.from_arrays(
        [keys, val, plain.column("headers"), plain.column("kafka")], schema=row.arrow_schema
    )


@pytest.fixture
def evolved(tmp_path: Path, archive: Any) -> Lake:
    first, second = assigned()
    lake = Lake(tmp_path / "lake", first.row)
    lake.add(first.row, batch(archive, first.row, 0), 0, 20)
    lake.evolve(second.iceberg_schema)
    lake.add(second.row, batch(archive, second.row, 20), 20, 40)
    return lake


class Ledger:
    def row_mapping(self, version: int) -> RowMapping | None:
        return {assignment.version: assignment.row for assignment in assigned()}.get(version)


def replayed(lake: Lake) -> list[bytes | None]:
    archive = lake.archive(registry=lambda *_: Ledger())
    return [value for records in archive.records(0) for value in records.column("value").to_pylist()]


def test_every_byte_comes_back(evolved: Lake) -> None:
    assert replayed(evolved) == EXPECTED


def test_rewrite_into_wider_columns_changes_nothing(evolved: Lake) -> None:
    table = evolved.load("orders")
    rows = table.scan().to_arrow().cast(schema_to_pyarrow(table.schema(), include_field_ids=True))
    assert rows.schema.field("val").type.field("number").type == pa.int64()
    evolved.replace([rows])
    assert replayed(evolved) == EXPECTED
