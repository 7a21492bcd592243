"""The columns of a rewritten file: of a mapping and the old file, so that no cell is lost.

Matched by id; the wider type wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from archiver.errors import UpkeepError
from archiver.storage.row_columns import field_id, list_values

_SHOWN: Final = 200
_WIDER = {
    (pa.int32(), pa.int64()): pa.int64(),
    (pa.int64(), pa.int32()): pa.int64(),
    (pa.float32(), pa.float64()): pa.float64(),
    (pa.float64(), pa.float32()): pa.float64(),
}


def wide_schema(mapping: pa.Schema, file: pa.Schema, names: Mapping[int, str]) -> pa.Schema:
    """Names are the mapping's, else in `names` (by id).

    Raises UpkeepError if a column is a struct, map or list in only one.
    """
    return pa.schema(_merged(mapping, file, names))


def _merged(ours: Iterable[pa.Field], theirs: Iterable[pa.Field], names: Mapping[int, str]) -> list[pa.Field]:
    remaining = {field_id(field): field for field in theirs}
    merged = [_widened(field, remaining.pop(field_id(field), None), names) for field in ours]
    taken = {field.name.lower() for field in merged}
    for identifier, field in remaining.items():
        name = field.name if identifier is None else names.get(identifier, field.name)
        while name.lower() in taken:
            name = f"{name}_{identifier}"
        taken.add(name.lower())
        merged.append(field.with_name(name))
    return merged


def _widened(ours: pa.Field, theirs: pa.Field | None, names: Mapping[int, str]) -> pa.Field:
    if theirs is None:
        return ours
    kind = _type(ours.type, theirs.type, names)
    return pa.field(ours.name, kind, nullable=ours.nullable or theirs.nullable, metadata=ours.metadata)


def _type(ours: pa.DataType, theirs: pa.DataType, names: Mapping[int, str]) -> pa.DataType:
    if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
        return pa.struct(_merged(ours, theirs, names))
    if pa.types.is_map(ours) and pa.types.is_map(theirs):
        return pa.map_(ours.key_field, _widened(ours.item_field, theirs.item_field, names))
    our_values, their_values = list_values(ours), list_values(theirs)
    if our_values is not None and their_values is not None:
        return pa.list_(_widened(our_values, their_values, names))
    if ours != theirs and (pa.types.is_nested(ours) or pa.types.is_nested(theirs)):
        raise UpkeepError(
            "a column of the file has another structure than the table's: rows of it can't be rewritten without a loss."
            " The file stays as it is. Have the engine that wrote it rewrite it with the table's types",
            column_type=str(ours)[:_SHOWN],
            file_type=str(theirs)[:_SHOWN],
        )
    if pa.types.is_decimal(ours) and pa.types.is_decimal(theirs) and ours.scale == theirs.scale:
        return max(ours, theirs, key=lambda kind: kind.precision)
    return _WIDER.get((ours, theirs), ours)
