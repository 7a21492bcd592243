"""Columns before ids and final names. Structs may contain themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from schema_mapping import names
from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.types import AnyColumnType


@dataclass(frozen=True, slots=True)
class StructOf:
    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    element: Held


@dataclass(frozen=True, slots=True)
class MapOf:
    key: AnyColumnType
    value: Held


Held: TypeAlias = AnyColumnType | StructOf | ListOf | MapOf
"""The type of a field: a scalar, a struct, a list or a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphField:
    step: Step
    name: str
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGraph:
    """`one_of`: the root's fields are the types of a value, which always have columns."""

    root: str
    structs: Mapping[str, tuple[GraphField, ...]]
    one_of: bool = False


def leaves(held: Held) -> int:
    """Leaf columns without expansion; a struct's `__unrecognized__` is one."""
    match held:
        case ListOf():
            return leaves(held.element)
        case MapOf():
            return 1 + leaves(held.value)
        case _:
            return 1


def held_structs(held: Held) -> Iterator[tuple[StructOf, Path, int]]:
    """Yield a field's struct, its steps and Arrow levels."""
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
    match held:
        case StructOf():
            return 2
        case ListOf():
            return 1 + levels(held.element)
        case MapOf():
            return 2 + levels(held.value)
        case _:
            return 1
