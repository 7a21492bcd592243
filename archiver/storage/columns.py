"""Columns by field id, and the leaf columns of an Arrow schema as Parquet and Iceberg name them.

Parquet, Iceberg and pyarrow each name a nested column differently; the field id is what they agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping.arrow_types import FIELD_ID_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One primitive column: its position in the file, and its names.

    `parquet_path` is the path in the file's schema (`headers.list.element.key`), `name` Iceberg's full column name
    (`headers.element.key`), `is_repeated` says that a list or map lies above it. `field_id` is None only in files
    written by others without ids.
    """

    index: int
    parquet_path: str
    name: str
    field_id: int | None
    type: pa.DataType
    is_repeated: bool


def leaves_of(schema: pa.Schema) -> tuple[Leaf, ...]:
    """List the leaf columns of `schema` in the order in which Parquet stores them."""
    primitive = (node for field in schema for node in _walk(_Node.top(field)) if not node.has_children)
    return tuple(
        Leaf(
            index=index,
            parquet_path=".".join(node.path),
            name=".".join(node.name),
            field_id=field_id(node.field),
            type=node.field.type,
            is_repeated=node.is_repeated,
        )
        for index, node in enumerate(primitive)
    )


def parquet_paths(schema: pa.Schema) -> dict[int, str]:
    """Map the id of every field, groups included, to its path in the file."""
    nodes = (node for field in schema for node in _walk(_Node.top(field)))
    return {found: ".".join(node.path) for node in nodes if (found := field_id(node.field)) is not None}


def field_id(field: pa.Field) -> int | None:
    """Return the field's id from its metadata, or None."""
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    return None if text is None else int(text)


def column_by_id(rows: pa.RecordBatch, identifier: int) -> pa.Array | None:
    """Find a column at any depth of structs; null where a struct above it is null. None where there is none."""
    path = _position(rows.schema, identifier)
    if path is None:
        return None
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def _position(fields: Iterable[pa.Field], identifier: int) -> tuple[int, ...] | None:
    for index, field in enumerate(fields):
        if field_id(field) == identifier:
            return (index,)
        below = _position(field.type, identifier) if pa.types.is_struct(field.type) else None
        if below is not None:
            return (index, *below)
    return None


@dataclass(frozen=True, slots=True)
class _Node:
    field: pa.Field
    path: tuple[str, ...]
    name: tuple[str, ...]
    is_repeated: bool

    @classmethod
    def top(cls, field: pa.Field) -> Self:
        return cls(field, (field.name,), (field.name,), is_repeated=False)

    def child(self, field: pa.Field, path: tuple[str, ...], name: str, *, repeated: bool = True) -> _Node:
        return _Node(field, self.path + path, (*self.name, name), is_repeated=self.is_repeated or repeated)

    @property
    def children(self) -> tuple[_Node, ...]:
        kind = self.field.type
        if pa.types.is_struct(kind):
            return tuple(self.child(field, (field.name,), field.name, repeated=False) for field in kind)
        if pa.types.is_map(kind):
            key = self.child(kind.key_field, ("key_value", "key"), "key")
            return key, self.child(kind.item_field, ("key_value", "value"), "value")
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return (self.child(kind.value_field, ("list", "element"), "element"),)
        return ()

    @property
    def has_children(self) -> bool:
        return bool(pa.types.is_nested(self.field.type))


def _walk(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children:
        yield from _walk(child)
