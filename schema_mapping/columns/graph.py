"""The columns of a schema before they have ids and final names: structs by name, with their fields.

Every format turns its schemas into a `ColumnGraph`. A struct may contain itself; expansion decides where columns stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from schema_mapping import names
from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.types import AnyColumnType


@dataclass(frozen=True, slots=True)
class StructOf:
    """A struct of the graph, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    element: Held


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map. Its keys are scalars."""

    key: AnyColumnType
    value: Held


Held: TypeAlias = AnyColumnType | StructOf | ListOf | MapOf
"""The type of a field: a scalar, a struct, a list or a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphField:
    """A field: its step, the name that its column gets if it is free, and its type."""

    step: Step
    name: str
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGraph:
    """The root struct of a key or value, and all structs that it leads to, with their fields in order.

    If `one_of` is set, a value has one of several types, and the root's fields are these types. They always have
    columns.
    """

    root: str
    structs: Mapping[str, tuple[GraphField, ...]]
    one_of: bool = False


def leaves(held: Held) -> int:
    """Leaf columns of a field if no struct below it is expanded; a struct's `__unrecognized__` is one leaf."""
    match held:
        case ListOf():
            return leaves(held.element)
        case MapOf():
            return 1 + leaves(held.value)
        case _:
            return 1


def held_structs(held: Held) -> Iterator[tuple[StructOf, Path, int]]:
    """The struct that a field leads to, if any, with the steps to it and the Arrow levels in between."""
    match held:
        case StructOf():
            yield held, (), 1
        case ListOf():
            for struct, path, level in held_structs(held.element):
                yield struct, (names.ELEMENT_STEP, *path), level + 1
        case MapOf():
            for struct, path, level in held_structs(held.value):
                yield struct, (names.MAP_VALUE_STEP, *path), level + 2
        case _:
            return


def levels(held: Held) -> int:
    """Arrow levels of a field if no struct below it is expanded."""
    match held:
        case StructOf():
            return 2
        case ListOf():
            return 1 + levels(held.element)
        case MapOf():
            return 2 + levels(held.value)
        case _:
            return 1
