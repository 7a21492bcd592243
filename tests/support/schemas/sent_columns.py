"""Rows of a mapping as a client sends them: without the archiver's columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from schema_mapping import names


def sent_batch(rows: pa.StructArray) -> pa.RecordBatch:
    """`rows` must not be sliced."""
    columns = {field.name: rows.field(field.name) for field in rows.type if field.name not in names.RESERVED}
    return pa.record_batch({name: sent_column(column) for name, column in columns.items()})


def sent_column(array: pa.Array) -> pa.Array:
    kind, nulls = array.type, array.is_null()
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if kinds.is_struct(kind):
        members = {field.name: array.field(field.name) for field in kind if field.name not in names.RESERVED}
        if not members:
            return pa.Array.from_buffers(pa.struct([]), len(array), [array.buffers()[0]], offset=array.offset)
        return pa.StructArray.from_arrays(list(map(sent_column, members.values())), list(members), mask=nulls)
    if kinds.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, sent_column(array.values), mask=nulls)
    if kinds.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, array.keys, sent_column(array.items), mask=nulls)
    return array


def sent_type(kind: pa.DataType) -> pa.DataType:
    """The type of `sent_column`."""
    if kinds.is_struct(kind):
        return pa.struct([(field.name, sent_type(field.type)) for field in kind if field.name not in names.RESERVED])
    if kinds.is_list(kind):
        return pa.list_(sent_type(kind.value_type))
    return pa.map_(kind.key_type, sent_type(kind.item_type)) if kinds.is_map(kind) else kind


def has_added(row: Any) -> bool:
    """Whether a decoded row has something that no column of a client holds."""
    match row:
        case dict():
            return any(
                has_added(value) if name not in names.RESERVED else value is not None for name, value in row.items()
            )
        case list() | tuple():
            return any(map(has_added, row))
        case _:
            return False
