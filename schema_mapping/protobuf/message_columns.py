"""What Protobuf messages ask for as columns: their types as the graph that ids and evolution work on."""

from __future__ import annotations

from schema_mapping.columns.graph import ColumnGraph, GraphField, Held, ListOf, MapOf, StructOf
from schema_mapping.protobuf.scalar_types import column_type
from schema_mapping.protobuf.type_graph import UNION_ROOT, FieldType, TypeGraph
from schema_mapping.protobuf.types import Cardinality


def message_columns(graph: TypeGraph) -> ColumnGraph:
    """The columns of a graph whose native columns are chosen: structs have its types' names, steps are numbers."""
    return ColumnGraph(
        root=graph.root,
        structs={
            name: tuple(
                GraphField(step=field.number, name=field.column_name, held=_held(field)) for field in kind.fields
            )
            for name, kind in graph.types.items()
        },
        one_of=graph.root == UNION_ROOT,
    )


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
