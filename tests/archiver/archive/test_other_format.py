"""A format that only tests know."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from schema_mapping import Assignment, LedgerState, RowMapping, assign
from tests.support.archive.lake import Lake
from tests.support.schemas.fixed_width import FixedSchema, record

TRADE = FixedSchema.of(id="int", day="date", at="time", price="decimal(9, 2)", tag="fixed[3]", trader="uuid")
WIDER = FixedSchema.of(
    id="int", day="date", at="time", price="decimal(12, 2)", tag="fixed[3]", trader="uuid", lot="long"
)


def assigned() -> tuple[Assignment, Assignment]:
    first = assign(LedgerState(), value=TRADE)
    return first, assign(first.state, value=WIDER)


def value_of(offset: int) -> bytes | None:
    if offset % 7 == 3:
        return (None, b"", b"no trade")[offset % 3]
    trader = uuid.uuid5(uuid.NAMESPACE_DNS, str(offset)).bytes
    common = (offset, 19_700 + offset, 1_000_001 * offset)
    if offset < 20:
        return record(TRADE, *common, -offset, b"old", trader)
    return record(WIDER, *common, 10**11 + offset, b"new", trader, -offset)


EXPECTED = [value_of(offset) for offset in range(40)]


def batch(archive: Any, row: RowMapping, start: int) -> pa.RecordBatch:
    raw = [
        archive.row(offset=offset, value=value_of(offset), schema_version=row.schema_version)
        for offset in range(start, start + 20)
    ]
    plain = archive.batch(raw)
    val = row.value.decode(pa.array([record.value for record in raw], pa.binary()))
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
        return {item.version: item.row for item in assigned()}.get(version)


def replayed(lake: Lake) -> list[bytes | None]:
    archive = lake.archive(registry=lambda *_: Ledger())
    return [value for record in archive.records(0) for value in record.column("value").to_pylist()]


def test_every_byte_comes_back(evolved: Lake) -> None:
    assert replayed(evolved) == EXPECTED


def test_a_rewrite_into_wider_columns_changes_nothing(evolved: Lake) -> None:
    table = evolved.load("orders")
    rows = table.scan().to_arrow().cast(schema_to_pyarrow(table.schema(), include_field_ids=True))
    assert rows.schema.field("val").type.field("price").type == pa.decimal128(12, 2)
    evolved.replace([rows])
    assert replayed(evolved) == EXPECTED
