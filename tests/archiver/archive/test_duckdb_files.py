"""Files that DuckDB writes are readable."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.chaos.duckdb_files import written_by_duckdb
from tests.support.archive.archived_rows import KnownMapping, rows_of
from tests.support.archive.lake import Lake

ROWS = 40


def ids_of(field: pa.Field) -> list[tuple[str, str]]:
    kind = field.type
    children = [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    named = (field.metadata or {}).get(b"PARQUET:field_id")
    below = [pair for child in children for pair in ids_of(child)]
    return [(field.name, named.decode()), *below] if named else below


def by_duckdb(rows: pa.Table) -> pa.Table:
    return pq.read_table(io.BytesIO(written_by_duckdb(rows))).replace_schema_metadata(None)


def column(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(number).encode()})


def test_decoded_values_are_kept() -> None:
    """DuckDB's dictionaries merge 0.0 and -0.0, so these files have none."""
    fields = [
        column("double", pa.float64(), 10),
        column("float", pa.float32(), 11),
        column("unsigned", pa.decimal128(20, 0), 12),
        column("tags", pa.list_(column("element", pa.string(), 14)), 13),
        column("blob", pa.binary(), 15),
        column("below", pa.struct([column("region", pa.string(), 17)]), 16),
    ]
    rows = [
        {
            "double": number,
            "float": number,
            "unsigned": Decimal(2**64 - 1),
            "tags": ["a\x00b", ""] if index % 2 else [],
            "blob": b"\x00\xff" * (index % 3),
            "below": {"region": "日本"} if index % 3 else None,
        }
        for index, number in enumerate([1.5, float("nan"), -0.0, 0.0, 0.0, -0.0] * 5)
    ]
    schema = pa.schema([column("val", pa.struct(fields), 2)])
    table = pa.Table.from_pylist([*({"val": row} for row in rows), {"val": None}], schema=schema)
    assert repr(by_duckdb(table).to_pylist()) == repr(table.to_pylist())


def test_rows_and_ids_are_kept(lake: Lake, archive: Any) -> None:
    path = lake.add(archive.rows, archive.batch(rows_of(archive, range(ROWS))), 0, ROWS)
    assert path is not None
    rows = pq.read_table(path.removeprefix("file://")).replace_schema_metadata(None)
    made = by_duckdb(rows)
    assert made.to_pylist() == rows.to_pylist()
    assert [ids_of(field) for field in made.schema] == [ids_of(field) for field in rows.schema]


def test_an_archive_reads_them(lake: Lake, archive: Any) -> None:
    lake.add(archive.rows, archive.batch(rows_of(archive, range(ROWS))), 0, ROWS)
    before = [batch.to_pylist() for batch in lake.archive().records(0)]
    lake.rewrite(by_duckdb)
    read = lake.archive(registry=lambda *_: KnownMapping(archive.rows))
    assert [batch.to_pylist() for batch in read.records(0)] == before
