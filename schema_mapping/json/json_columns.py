"""A struct for each object, and for each choice of types.

A member's step is its name. A value that is no object is the field `value`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from schema_mapping.columns.graph import ColumnGraph, GraphField, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.paths import Path, Step, is_field
from schema_mapping.columns.types import ColumnType
from schema_mapping.json.types import (
    ArrayType,
    ChoiceType,
    JsonMember,
    JsonType,
    MapType,
    ObjectType,
    ScalarType,
    branch_name,
    type_text,
)
from schema_mapping.value_format import DeclaredField

VALUE: Final = "value"
ROOT: Final = "$"
COLUMN_OF: Final = {
    "boolean": ColumnType.BOOLEAN,
    "int": ColumnType.INT,
    "integer": ColumnType.LONG,
    "number": ColumnType.DOUBLE,
    "string": ColumnType.STRING,
}
_NOT_A_LETTER: Final = re.compile(r"\W")


@dataclass(slots=True)
class JsonColumns:
    """The structs by name, each with its fields' members."""

    structs: dict[str, tuple[GraphField, ...]] = field(default_factory=dict)
    members: dict[str, tuple[JsonMember, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: JsonType) -> JsonColumns:
        columns = cls()
        kind = root if isinstance(root, ObjectType) else ObjectType((JsonMember(VALUE, root),))
        columns.held(kind, ROOT)
        return columns

    @property
    def graph(self) -> ColumnGraph:
        return ColumnGraph(root=ROOT, structs=self.structs)

    def held(self, kind: JsonType, at: str) -> Held:
        match kind:
            case ScalarType(name):
                return COLUMN_OF[name]
            case ArrayType(items):
                return ListOf(self.held(items, f"{at}[]"))
            case MapType(values):
                return MapOf(ColumnType.STRING, self.held(values, f"{at}{{}}"))
            case ObjectType(members):
                return self._struct(members, at)
            case ChoiceType(branches):
                return self._struct(tuple(JsonMember(branch_name(branch), branch) for branch in branches), f"{at}|")
            case _:
                return ColumnType.STRING

    def comments(self) -> Iterator[tuple[tuple[str, Step], str]]:
        for struct, members in self.members.items():
            for member in members:
                if member.doc:
                    yield (struct, member.name), member.doc

    def declared(self, path: Path) -> DeclaredField:
        """Raises KeyError if no field has the path."""
        struct, member = ROOT, None
        for step in path:
            if is_field(step):
                if struct not in self.members:
                    raise KeyError(path)
                member = next((member for member in self.members[struct] if member.name == step), None)
                if member is None:
                    raise KeyError(path)
                struct = _below(self.structs[struct], step)
        if member is None:
            raise KeyError(path)
        return DeclaredField(name=member.name, type=type_text(member.type))

    def _struct(self, members: tuple[JsonMember, ...], name: str) -> StructOf:
        self.members[name] = members
        self.structs[name] = ()
        self.structs[name] = tuple(
            GraphField(
                step=member.name,
                name=_NOT_A_LETTER.sub("_", member.name) or "_",
                held=self.held(member.type, f"{name}.{member.name}"),
            )
            for member in members
        )
        return StructOf(name)


def _below(fields: tuple[GraphField, ...], step: Step) -> str:
    value = next(field.held for field in fields if field.step == step)
    while isinstance(value, ListOf | MapOf):
        value = value.element if isinstance(value, ListOf) else value.value
    return value.name if isinstance(value, StructOf) else ""
