"""What a column without children holds: from a field's Protobuf kind to the ledger's type, and from that to Arrow."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schema_mapping.ledger import ColumnType
from schema_mapping.type_graph import FieldType
from schema_mapping.types import MappedField, WellKnown, WireKind

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

ARROW_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.UINT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.STRING: pa.string(),
    ColumnType.BINARY: pa.binary(),
    ColumnType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    ColumnType.DECIMAL: pa.decimal128(20, 0),
}


def column_type(field: FieldType | MappedField) -> ColumnType:
    """The type of the one column that a value of the field has; the field is no message with columns of its own."""
    if field.decimal:
        return ColumnType.DECIMAL
    if field.native is WellKnown.TIMESTAMP:
        return ColumnType.TIMESTAMPTZ
    if field.native is WellKnown.DURATION:
        return ColumnType.LONG
    if field.native is not None and field.native.is_json:
        return ColumnType.STRING
    return COLUMN_TYPES[(field.native.wrapped if field.native is not None else None) or field.kind]
