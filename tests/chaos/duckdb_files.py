"""Data files written by DuckDB, with Iceberg's field ids.

Without dictionaries, in which DuckDB 1.5 confuses 0.0 and -0.0.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import pyarrow as pa

_FIELD_ID: Final = b"PARQUET:field_id"


def written_by_duckdb(rows: pa.Table) -> bytes:
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "made.parquet"
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("written_rows", rows)
        ids = f"{{{', '.join(_named({field.name: field for field in rows.schema}))}}}"
        connection.execute(
            f"COPY (FROM written_rows) TO '{path}' (FORMAT parquet, DICTIONARY_SIZE_LIMIT 0, FIELD_IDS {ids})"
        )
        return path.read_bytes()


def _ids(field: pa.Field) -> str:
    kind, children = field.type, dict[str, pa.Field]()
    if pa.types.is_struct(kind):
        children = {child.name: child for child in kind}
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = {"element": kind.value_field}
    elif pa.types.is_map(kind):
        children = {"key": kind.key_field, "value": kind.item_field}
    parts = [f"__duckdb_field_id: {int(field.metadata[_FIELD_ID])}"]
    return f"{{{', '.join((*parts, *_named(children)))}}}"


def _named(fields: dict[str, pa.Field]) -> list[str]:
    return [f"{name!r}: {_ids(field)}" for name, field in fields.items()]
