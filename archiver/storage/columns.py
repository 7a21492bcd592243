"""Columns of Arrow rows by field id: what Iceberg, pyarrow and a file's own names for a column agree on."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping.columns.arrow import FIELD_ID_KEY


def field_id(field: pa.Field) -> int | None:
    """Return the field's id from its metadata, or None."""
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    return None if text is None else int(text)


def column_by_id(rows: pa.RecordBatch, identifier: int) -> pa.Array | None:
    """Find a column at any depth of structs; null where a struct above it is null. None where there is none."""
    path = _position(rows.schema, identifier)
    if path is None:
        return None
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def _position(fields: Iterable[pa.Field], identifier: int) -> tuple[int, ...] | None:
    for index, field in enumerate(fields):
        if field_id(field) == identifier:
            return (index,)
        below = _position(field.type, identifier) if pa.types.is_struct(field.type) else None
        if below is not None:
            return (index, *below)
    return None
