"""The types of JSON values.

Mappings keep them as JSON (`to_data`), so that reading schemas otherwise changes no archived file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from schema_mapping.errors import DescriptorError

ScalarName: TypeAlias = Literal["boolean", "int", "integer", "number", "string"]
SCALARS: Final[tuple[ScalarName, ...]] = ("boolean", "int", "integer", "number", "string")


@dataclass(frozen=True, slots=True)
class ScalarType:
    """`int` is an integer of 32 bits."""

    name: ScalarName


@dataclass(frozen=True, slots=True)
class AnyJson:
    """Kept as JSON text."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    items: JsonType


@dataclass(frozen=True, slots=True)
class MapType:
    """An object with any names, and values of one type."""

    values: JsonType


@dataclass(frozen=True, slots=True)
class JsonMember:
    name: str
    type: JsonType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectType:
    members: tuple[JsonMember, ...]


@dataclass(frozen=True, slots=True)
class ChoiceType:
    """No two branches begin with the same byte."""

    branches: tuple[JsonType, ...]


JsonType: TypeAlias = ScalarType | AnyJson | ArrayType | MapType | ObjectType | ChoiceType
ANY: Final = AnyJson()


def branch_name(kind: JsonType) -> str:
    match kind:
        case ScalarType(name):
            return "integer" if name == "int" else name
        case ArrayType():
            return "array"
        case ObjectType() | MapType():
            return "object"
        case _:
            return "json"


def to_data(kind: JsonType, *, docs: bool = False) -> Any:
    match kind:
        case ScalarType(name):
            return name
        case ArrayType(items):
            return {"array": to_data(items, docs=docs)}
        case MapType(values):
            return {"map": to_data(values, docs=docs)}
        case ObjectType(members):
            return {"object": [_member_data(member, docs=docs) for member in members]}
        case ChoiceType(branches):
            return {"choice": [to_data(branch, docs=docs) for branch in branches]}
        case _:
            return "json"


def _member_data(member: JsonMember, *, docs: bool) -> list[Any]:
    doc = [member.doc] if docs and member.doc else []
    return [member.name, to_data(member.type, docs=docs), *doc]


def from_data(data: Any) -> JsonType:
    """Raises DescriptorError for types of a newer archiver."""
    match data:
        case "json":
            return ANY
        case str() if data in SCALARS:
            return ScalarType(data)
        case {"array": items}:
            return ArrayType(from_data(items))
        case {"map": values}:
            return MapType(from_data(values))
        case {"object": members}:
            return ObjectType(tuple(_member(member) for member in members))
        case {"choice": branches}:
            return ChoiceType(tuple(from_data(branch) for branch in branches))
        case _:
            raise DescriptorError("a type of JSON values that this archiver doesn't know; upgrade it", type=repr(data))


def _member(data: list[Any]) -> JsonMember:
    return JsonMember(data[0], from_data(data[1]), data[2] if len(data) > 2 else None)  # noqa: PLR2004


def type_text(kind: JsonType) -> str:
    """As in `array<string>`, `one of integer, string`, `json`."""
    match kind:
        case ArrayType(items):
            return f"array<{type_text(items)}>"
        case MapType(values):
            return f"map<{type_text(values)}>"
        case ChoiceType(branches):
            return f"one of {', '.join(map(type_text, branches))}"
        case ScalarType(name):
            return "int32" if name == "int" else name
        case ObjectType():
            return "object"
        case _:
            return "json"
