"""An assignment's columns and changes."""

from __future__ import annotations

import re

from pyiceberg.schema import Schema

from schema_mapping import Assignment

REMARK = re.compile(r" \(removed in schema version \d+\)")


def columns(schema: Schema, under: str = "val") -> dict[str, tuple[int, str]]:
    struct = schema.find_type(under)
    return {
        field.name: (field.field_id, REMARK.sub("", str(field.field_type)))
        for field in struct.fields
        if not field.name.startswith("__")
    }


def changed(assignment: Assignment) -> list[tuple[str, str]]:
    return [(change.kind.value, change.column) for change in assignment.changes]


def row_columns(assignment: Assignment) -> dict[str, int]:
    kind = assignment.row.arrow_schema.field("val").type
    return {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in kind if not field.name.startswith("__")}
