"""Protobuf types as people write them in a .proto, by the path of the column."""

from __future__ import annotations

from schema_mapping.ledger import Path
from schema_mapping.type_graph import FieldType, TypeGraph
from schema_mapping.types import Cardinality


class TypeNames:
    """The declared types of a message's fields."""

    def __init__(self, graph: TypeGraph) -> None:
        self._graph = graph

    def at(self, path: Path) -> str:
        """The type of the field at a path of a live column: `repeated shop.Line`, `map<string, int32>`."""
        message = self._graph.root
        field: FieldType | None = None
        for step in path:
            if step < 0:
                continue
            field = next(each for each in self._graph.types[message].fields if each.number == step)
            message = _target(field) or message
        assert field is not None
        return declared(field)


def declared(field: FieldType) -> str:
    """The type of a field."""
    match field.cardinality:
        case Cardinality.SINGULAR:
            return f"required {_value(field)}" if field.required else _value(field)
        case Cardinality.REPEATED:
            return f"repeated {_value(field)}"
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            return f"map<{_value(field.key)}, {_value(field.value)}>"


def _target(field: FieldType) -> str | None:
    return field.value.message if field.value is not None else field.message


def _value(field: FieldType) -> str:
    if field.message is not None:
        return field.message
    return field.enum.full_name if field.enum is not None else field.kind.name.lower()
