"""Columns without structs. Lists and maps are leaves; so is a struct at the depth limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField, StructType

from schema_mapping import names

_RAW_ONLY = frozenset({names.RAW})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """`is_plain`: a view shows it by default."""

    path: tuple[str, ...]
    field_id: int
    type: IcebergType
    doc: str | None
    is_plain: bool

    @property
    def root(self) -> str:
        return self.path[0]

    @property
    def is_technical(self) -> bool:
        """Such as `__raw__` in a key or value."""
        return self.root in (names.KEY, names.VAL) and self.path[-1] in names.RESERVED


def leaves(schema: Schema, depth: int | None = None) -> tuple[Leaf, ...]:
    """`depth`: flattened structs below key or value; None: all."""
    return tuple(
        leaf
        for field in schema.fields
        for leaf in _below(field, (), None if field.name == names.KAFKA else depth, frozenset())
    )


def _below(field: NestedField, above: tuple[str, ...], depth: int | None, siblings: frozenset[str]) -> Iterator[Leaf]:
    path = (*above, field.name)
    kind = field.field_type
    if isinstance(kind, StructType) and kind.fields and (depth is None or len(path) <= depth + 1):
        inner = frozenset(field.name for field in kind.fields)
        for child in kind.fields:
            yield from _below(child, path, depth, inner)
        return
    yield Leaf(path=path, field_id=field.field_id, type=kind, doc=field.doc, is_plain=_is_plain(path, siblings))


def _is_plain(path: tuple[str, ...], siblings: frozenset[str]) -> bool:
    if path[0] not in (names.KEY, names.VAL):
        return True
    match path[1:]:
        case (names.RAW,):
            return path[0] == names.KEY or siblings == _RAW_ONLY
        case (names.ERR,):
            return True
        case (*_, names.UNRECOGNIZED) if len(path) > 2:  # noqa: PLR2004 - below a field of the message
            return len(siblings) == 1
        case (*_, last):
            return last not in names.RESERVED
        case _:
            return True
