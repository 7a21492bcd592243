"""Files that DuckDB writes: they have the rows and field ids that they were given, and an archive reads them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.chaos.duckdb_files import written_by_duckdb
from tests.support.archive.archived_rows import KnownMapping, rows_of
from tests.support.archive.lake import Lake

ROWS = 40


def ids_of(field: pa.Field) -> list[tuple[str, str]]:
    kind = field.type
    children = [kind.field(place) for place in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    named = (field.metadata or {}).get(b"PARQUET:field_id")
    below = [pair for child in children for pair in ids_of(child)]
    return [(field.name, named.decode()), *below] if named else below


def by_duckdb(rows: pa.Table) -> pa.Table:
    return pq.read_table(io.BytesIO(written_by_duckdb(rows))).replace_schema_metadata(None)


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
