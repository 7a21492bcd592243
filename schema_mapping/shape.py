"""The unnumbered tree: what columns a message needs, before ids and names are given.

Evolution compares shapes with the ledger, so it knows nothing of Protobuf beyond field numbers.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from schema_mapping import names
from schema_mapping.ledger import ColumnType, Path
from schema_mapping.scalar_types import column_type
from schema_mapping.type_graph import FieldType, TypeGraph
from schema_mapping.types import Cardinality

ROOT_SPECIALS = (names.PREFIX_STEP, names.RAW_STEP, names.ERR_STEP, names.FORM_STEP, names.UNRECOGNIZED_STEP)
"""The steps of our own columns in a root's struct, which stand behind its fields in this order."""

TEXTS = (names.ERR_STEP, names.FORM_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A column to be: its step from the parent (a field number or a reserved step), wanted name, type and children."""

    step: int
    name: str
    type: ColumnType
    children: tuple[Shape, ...] = ()


def special(step: int) -> Shape:
    """A synthesized column: `__err__` and `__form__` are text, the others are bytes."""
    kind = ColumnType.STRING if step in TEXTS else ColumnType.BINARY
    return Shape(step=step, name=names.STEP_NAMES[step], type=kind)


def root_shape(graph: TypeGraph, expanded: Container[Path]) -> tuple[Shape, ...]:
    """Children of a key's or value's struct; messages at the paths in `expanded` have their columns."""
    return (*_fields(graph, graph.root, (), expanded), *map(special, ROOT_SPECIALS))


def raw_shape() -> tuple[Shape, ...]:
    """Children of a key's or value's struct that has no schema."""
    return (special(names.RAW_STEP),)


def field_shape(graph: TypeGraph, field: FieldType, path: Path, expanded: Container[Path]) -> Shape:
    """The column of a field whose struct stands at `path`."""
    here = (*path, field.number)
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _value(graph, field, (field.number, field.column_name), here, expanded)
        case Cardinality.REPEATED:
            place = (names.ELEMENT_STEP, names.ELEMENT_NAME)
            element = _value(graph, field, place, (*here, names.ELEMENT_STEP), expanded)
            return Shape(step=field.number, name=field.column_name, type=ColumnType.LIST, children=(element,))
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            places = (
                (field.key, (names.MAP_KEY_STEP, names.MAP_KEY_NAME)),
                (field.value, (names.MAP_VALUE_STEP, names.MAP_VALUE_NAME)),
            )
            children = tuple(_value(graph, inner, place, (*here, place[0]), expanded) for inner, place in places)
            return Shape(step=field.number, name=field.column_name, type=ColumnType.MAP, children=children)


def _value(graph: TypeGraph, field: FieldType, place: tuple[int, str], path: Path, expanded: Container[Path]) -> Shape:
    step, name = place
    if field.message is None:
        return Shape(step=step, name=name, type=column_type(field))
    tail = (special(names.UNRECOGNIZED_STEP),)
    if path not in expanded:
        return Shape(step=step, name=name, type=ColumnType.CUT, children=tail)
    children = (*_fields(graph, field.message, path, expanded), *tail)
    return Shape(step=step, name=name, type=ColumnType.STRUCT, children=children)


def _fields(graph: TypeGraph, message: str, path: Path, expanded: Container[Path]) -> tuple[Shape, ...]:
    return tuple(field_shape(graph, field, path, expanded) for field in graph.types[message].fields)
