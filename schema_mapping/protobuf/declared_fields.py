"""The declared fields of columns, by path."""

from __future__ import annotations

from schema_mapping.columns.paths import Path, field_step, is_field
from schema_mapping.protobuf.field_kinds import Cardinality
from schema_mapping.protobuf.type_graph import FieldType, MessageType, TypeGraph


class DeclaredFields:
    def __init__(self, graph: TypeGraph) -> None:
        self._graph = graph

    def field(self, path: Path) -> FieldType:
        field, _ = self._walk(path)
        assert field is not None
        return field

    def message(self, path: Path) -> MessageType:
        return self._graph.types[self._walk(path)[1]]

    def _walk(self, path: Path) -> tuple[FieldType | None, str]:
        message = self._graph.root
        field: FieldType | None = None
        for step in path:
            if is_field(step):
                fields, number = self._graph.types[message].fields, field_step(step)
                field = next(candidate for candidate in fields if candidate.number == number)
                message = field.held_message or message
        return field, message


def declared_type(field: FieldType) -> str:
    """As in a .proto: `repeated shop.Line`, `map<string, int32>`."""
    match field.cardinality:
        case Cardinality.SINGULAR:
            return f"required {_value(field)}" if field.required else _value(field)
        case Cardinality.REPEATED:
            return f"repeated {_value(field)}"
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            return f"map<{_value(field.key)}, {_value(field.value)}>"


def field_name(field: FieldType) -> str:
    """Of an extension `[shop.rebate]`, as in the text format."""
    return field.name if field.extension is None else f"[{field.extension}]"


def _value(field: FieldType) -> str:
    if field.message is not None:
        return field.message
    return field.enum.full_name if field.enum is not None else field.kind.name.lower()
