"""The wanted columns after expansion, without ids."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, GraphField, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.types import AnyColumnType, ColumnType

ROOT_SPECIALS = (names.PREFIX_STEP, names.RAW_STEP, names.ERR_STEP, names.FORM_STEP, names.UNRECOGNIZED_STEP)
"""The steps of the added columns in a root's struct, in order, after its fields."""

TEXTS = (names.ERR_STEP, names.FORM_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    step: Step
    name: str
    type: AnyColumnType
    children: tuple[Shape, ...] = ()


def special(step: int) -> Shape:
    kind = ColumnType.STRING if step in TEXTS else ColumnType.BINARY
    return Shape(step=step, name=names.STEP_NAMES[step], type=kind)


def root_shape(graph: ColumnGraph, expanded: Container[Path]) -> tuple[Shape, ...]:
    """Structs at paths in `expanded` have columns."""
    return (*_fields(graph, graph.root, (), expanded), *map(special, ROOT_SPECIALS))


def raw_shape() -> tuple[Shape, ...]:
    return (special(names.RAW_STEP),)


def field_shape(graph: ColumnGraph, field: GraphField, path: Path, expanded: Container[Path]) -> Shape:
    return _shape(graph, field.held, (field.step, field.name), (*path, field.step), expanded)


def _shape(graph: ColumnGraph, held: Held, place: tuple[Step, str], path: Path, expanded: Container[Path]) -> Shape:
    def inner(held: Held, step: int) -> Shape:
        return _shape(graph, held, (step, names.STEP_NAMES[step]), (*path, step), expanded)

    step, name = place
    match held:
        case ListOf():
            element = inner(held.element, names.ELEMENT_STEP)
            return Shape(step=step, name=name, type=ColumnType.LIST, children=(element,))
        case MapOf():
            parts = inner(held.key, names.MAP_KEY_STEP), inner(held.value, names.MAP_VALUE_STEP)
            return Shape(step=step, name=name, type=ColumnType.MAP, children=parts)
        case StructOf():
            tail = (special(names.UNRECOGNIZED_STEP),)
            if path not in expanded:
                return Shape(step=step, name=name, type=ColumnType.CUT, children=tail)
            children = (*_fields(graph, held.name, path, expanded), *tail)
            return Shape(step=step, name=name, type=ColumnType.STRUCT, children=children)
        case scalar:
            return Shape(step=step, name=name, type=scalar)


def _fields(graph: ColumnGraph, struct: str, path: Path, expanded: Container[Path]) -> tuple[Shape, ...]:
    return tuple(field_shape(graph, field, path, expanded) for field in graph.structs[struct])
