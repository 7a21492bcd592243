"""The columns that a schema asks for, before ids and names are given: structs by name, and the fields in each.

Every format turns its schemas into this graph; ids, ledger, evolution and expansion know nothing else of them. A struct
may hold itself, directly or not: expansion decides where columns stop.
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
    """One of the graph's structs, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    element: Held


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map; its keys are scalars."""

    key: AnyColumnType
    value: Held


Held: TypeAlias = AnyColumnType | StructOf | ListOf | MapOf
"""What a field holds: a scalar type, or what holds others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphField:
    """A field: its step, the name its column should have if it is free, and what it holds."""

    step: Step
    name: str
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGraph:
    """The struct of a key or value, by name, and all structs that it leads to, with their fields in order.

    With `one_of`, the root's fields are the types that a value may be one of; these always have columns.
    """

    root: str
    structs: Mapping[str, tuple[GraphField, ...]]
    one_of: bool = False


def leaves(held: Held) -> int:
    """Leaf columns of a field while no struct below it has columns; a struct's `__unrecognized__` is one."""
    match held:
        case ListOf():
            return leaves(held.element)
        case MapOf():
            return 1 + leaves(held.value)
        case _:
            return 1


def held_structs(held: Held) -> Iterator[tuple[StructOf, Path, int]]:
    """The struct that a field leads to, if any: with the steps from the field, and how many Arrow levels it is down."""
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
    """Arrow levels of a field while no struct below it has columns."""
    match held:
        case StructOf():
            return 2
        case ListOf():
            return 1 + levels(held.element)
        case MapOf():
            return 2 + levels(held.value)
        case _:
            return 1
