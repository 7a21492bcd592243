"""Chooses fields with one scalar column: well-known types and uint64.

A message is well known if its facts equal Google's. A root stays a struct.
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
    genuine_types = _known_in(graph) if options.well_known_types == "native" else {}
    decimal = options.uint64 == "decimal"
    types = {
        name: kind
        if name == UNION_ROOT
        else replace(kind, fields=tuple(_native(field, genuine_types, decimal=decimal) for field in kind.fields))
        for name, kind in graph.types.items()
    }
    return replace(graph, types=types)


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
    """Return well-known types by name. JSON types count only if all are genuine."""
    genuine = _genuine_types()
    matching = {name for name, kind in graph.types.items() if genuine.get(name) == kind}
    family = {kind.value for kind in WellKnown if kind.is_json}
    if not family <= matching:
        matching -= family
    return {name: WellKnown(name) for name in matching}


@cache
def _genuine_types() -> dict[str, MessageType]:
    return {name: kind for descriptor in _GENUINE for name, kind in type_graph(descriptor).types.items()}
