"""The type of the one column that a Protobuf field without columns below it has."""

from __future__ import annotations

from typing import Final

from schema_mapping.columns.types import AnyColumnType, ColumnType, DecimalColumn
from schema_mapping.protobuf.type_graph import FieldType
from schema_mapping.protobuf.types import MappedField, WellKnown, WireKind

UNSIGNED_LONG: Final = DecimalColumn(20, 0)
"""What shows unsigned 64-bit numbers as they are."""

COLUMN_TYPES: Final = {
    WireKind.DOUBLE: ColumnType.DOUBLE,
    WireKind.FLOAT: ColumnType.FLOAT,
    WireKind.INT64: ColumnType.LONG,
    WireKind.UINT64: ColumnType.LONG,
    WireKind.INT32: ColumnType.INT,
    WireKind.FIXED64: ColumnType.LONG,
    WireKind.FIXED32: ColumnType.UINT,
    WireKind.BOOL: ColumnType.BOOLEAN,
    WireKind.STRING: ColumnType.STRING,
    WireKind.BYTES: ColumnType.BINARY,
    WireKind.UINT32: ColumnType.UINT,
    WireKind.ENUM: ColumnType.STRING,
    WireKind.SFIXED32: ColumnType.INT,
    WireKind.SFIXED64: ColumnType.LONG,
    WireKind.SINT32: ColumnType.INT,
    WireKind.SINT64: ColumnType.LONG,
}


def column_type(field: FieldType | MappedField) -> AnyColumnType:
    """The type of the one column that a value of the field has; the field is no message with columns of its own."""
    if field.decimal:
        return UNSIGNED_LONG
    if field.native is WellKnown.TIMESTAMP:
        return ColumnType.TIMESTAMPTZ
    if field.native is WellKnown.DURATION:
        return ColumnType.LONG
    if field.native is not None and field.native.is_json:
        return ColumnType.STRING
    return COLUMN_TYPES[(field.native.wrapped if field.native is not None else None) or field.kind]
