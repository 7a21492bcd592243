"""Message types as a `ColumnGraph`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, GraphField, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.paths import nanos_step
from schema_mapping.columns.types import UNSIGNED_LONG, AnyColumnType, ColumnType
from schema_mapping.protobuf.field_kinds import Cardinality, WellKnown, WireKind
from schema_mapping.protobuf.mapped_messages import MappedField
from schema_mapping.protobuf.type_graph import UNION_ROOT, FieldType, TypeGraph

"""The column type that shows unsigned 64-bit numbers as they are."""

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


def message_columns(graph: TypeGraph) -> ColumnGraph:
    """Native columns must be chosen already. Steps are field numbers."""
    return ColumnGraph(
        root=graph.root,
        structs={
            name: tuple(column for field in kind.fields for column in _columns(field))
            for name, kind in graph.types.items()
        },
        one_of=graph.root == UNION_ROOT,
    )


def _columns(field: FieldType) -> Iterator[GraphField]:
    yield GraphField(step=field.number, name=field.column_name, held=_held(field))
    if field.nanos:
        is_list = field.cardinality is not Cardinality.SINGULAR
        kind: Held = ListOf(ColumnType.INT) if is_list else ColumnType.INT
        yield GraphField(step=nanos_step(field.number), name=f"{field.column_name}{names.NANOS_SUFFIX}", held=kind)


def _held(field: FieldType) -> Held:
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _value(field)
        case Cardinality.REPEATED:
            return ListOf(_value(field))
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            return MapOf(column_type(field.key), _value(field.value))


def _value(field: FieldType) -> Held:
    return column_type(field) if field.message is None else StructOf(field.message)


def column_type(field: FieldType | MappedField) -> AnyColumnType:
    """The field has no columns below it."""
    if field.decimal:
        return UNSIGNED_LONG
    if field.native is WellKnown.TIMESTAMP:
        return ColumnType.TIMESTAMPTZ
    if field.native is WellKnown.DURATION:
        return ColumnType.LONG
    if field.native is not None and field.native.is_json:
        return ColumnType.STRING
    return COLUMN_TYPES[(field.native.wrapped if field.native is not None else None) or field.kind]
