"""Chooses fields with one scalar column: well-known types and uint64.

A well-known message equals `google/protobuf`'s under its name. A root stays a struct. `timestamp` chooses Timestamps
only, each with a column for the nanoseconds below microseconds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor

from schema_mapping.columns.options import MappingOptions
from schema_mapping.protobuf.field_kinds import Cardinality, WellKnown, WireKind
from schema_mapping.protobuf.type_graph import UNION_ROOT, FieldType, MessageType, TypeGraph, type_graph

UNSIGNED_LONGS: Final = (WireKind.UINT64, WireKind.FIXED64)

_GENUINE: Final[tuple[Descriptor, ...]] = (
    timestamp_pb2.Timestamp.DESCRIPTOR,
    duration_pb2.Duration.DESCRIPTOR,
    struct_pb2.Value.DESCRIPTOR,
    *wrappers_pb2.DESCRIPTOR.message_types_by_name.values(),
)


def with_native_columns(graph: TypeGraph, options: MappingOptions) -> TypeGraph:
    if options.well_known_types == "struct" and options.uint64 == "long":
        return graph
    chosen = _chosen(graph, options)
    decimal = options.uint64 == "decimal"
    nanos = options.well_known_types == "timestamp"
    types = {
        name: kind
        if name == UNION_ROOT
        else replace(kind, fields=tuple(_column(field, chosen, decimal=decimal, nanos=nanos) for field in kind.fields))
        for name, kind in graph.types.items()
    }
    return replace(graph, types=types)


def _chosen(graph: TypeGraph, options: MappingOptions) -> dict[str, WellKnown]:
    match options.well_known_types:
        case "struct":
            return {}
        case "timestamp":
            return {name: kind for name, kind in _known_in(graph).items() if kind is WellKnown.TIMESTAMP}
        case "native":
            return _known_in(graph)


def _column(field: FieldType, known: dict[str, WellKnown], *, decimal: bool, nanos: bool) -> FieldType:
    column = _native(field, known, decimal=decimal)
    is_time = (column.value or column).native is WellKnown.TIMESTAMP
    return replace(column, nanos=True) if nanos and is_time else column


def _native(field: FieldType, known: dict[str, WellKnown], *, decimal: bool) -> FieldType:
    if field.cardinality is Cardinality.MAP:
        assert field.key is not None
        assert field.value is not None
        key, value = (_native(part, known, decimal=decimal) for part in (field.key, field.value))
        return replace(field, key=key, value=value)
    if field.message is not None and field.message in known:
        native = known[field.message]
        return replace(field, message=None, native=native, decimal=decimal and native is WellKnown.UINT64_VALUE)
    return replace(field, decimal=True) if decimal and field.kind in UNSIGNED_LONGS else field


def _known_in(graph: TypeGraph) -> dict[str, WellKnown]:
    """JSON types count only if all are genuine."""
    genuine = _genuine_types()
    matching = {name for name, kind in graph.types.items() if genuine.get(name) == kind}
    family = {kind.value for kind in WellKnown if kind.is_json}
    if not family <= matching:
        matching -= family
    return {name: WellKnown(name) for name in matching}


@cache
def _genuine_types() -> dict[str, MessageType]:
    return {name: kind for descriptor in _GENUINE for name, kind in type_graph(descriptor).types.items()}
