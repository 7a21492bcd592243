"""The leaf columns of an Arrow schema, by Parquet's and Iceberg's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.exact_type import Exact
from archiver.storage.row_columns import field_id

Paths: TypeAlias = Mapping[int, tuple[str, ...]]
"""The names in the path of every field in the file, by field id."""
_KNOWN_SCHEMAS: Final = 16
"""Schemas that are cached with their leaves: a table's files have few, and one of 2,000 columns takes three
megabytes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLeaf:
    """`path` is Parquet's name (`headers.list.element.key`), `name` Iceberg's (`headers.element.key`).

    `is_repeated`: below a list or map. `field_id` is None only in other writers' files. `steps`: positions of the
    structs above.
    """

    index: int
    path: str
    parts: tuple[str, ...]
    name: str
    field_id: int | None
    type: pa.DataType
    is_repeated: bool
    steps: tuple[int, ...]

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """Null below a null struct. Not for repeated columns."""
        column = rows.column(self.steps[0])
        return pc.struct_field(column, self.steps[1:]) if self.steps[1:] else column


def leaves_of(schema: pa.Schema) -> tuple[ParquetLeaf, ...]:
    return _leaves(_nodes(schema))


def leaves_and_paths(schema: pa.Schema) -> tuple[tuple[ParquetLeaf, ...], Paths]:
    """Paths are by id, groups included."""
    return _leaves_and_paths(Exact.of_schema(schema))


@lru_cache(maxsize=_KNOWN_SCHEMAS)
def _leaves_and_paths(columns: Exact) -> tuple[tuple[ParquetLeaf, ...], Paths]:
    nodes = _nodes(columns.type)
    paths = {identifier: node.path for node in nodes if (identifier := field_id(node.field)) is not None}
    return _leaves(nodes), MappingProxyType(paths)


def _leaves(nodes: list[_Node]) -> tuple[ParquetLeaf, ...]:
    primitive = (node for node in nodes if not node.has_children)
    return tuple(
        ParquetLeaf(
            index=index,
            path=".".join(node.path),
            parts=node.path,
            name=".".join(node.name),
            field_id=field_id(node.field),
            type=node.field.type,
            is_repeated=node.is_repeated,
            steps=node.steps,
        )
        for index, node in enumerate(primitive)
    )


def _nodes(columns: Iterable[pa.Field]) -> list[_Node]:
    return [node for at, field in enumerate(columns) for node in _walk(_Node.top(field, at))]


@dataclass(frozen=True, slots=True)
class _Node:
    field: pa.Field
    path: tuple[str, ...]
    name: tuple[str, ...]
    steps: tuple[int, ...]
    is_repeated: bool = False

    @classmethod
    def top(cls, field: pa.Field, at: int) -> Self:
        return cls(field, (field.name,), (field.name,), (at,))

    def element(self, field: pa.Field, path: tuple[str, ...], name: str) -> _Node:
        return _Node(field, self.path + path, (*self.name, name), (), is_repeated=True)

    def member(self, field: pa.Field, at: int) -> _Node:
        steps = () if self.is_repeated else (*self.steps, at)
        return _Node(field, (*self.path, field.name), (*self.name, field.name), steps, self.is_repeated)

    @property
    def children(self) -> tuple[_Node, ...]:
        kind = self.field.type
        if pa.types.is_struct(kind):
            return tuple(self.member(field, at) for at, field in enumerate(kind))
        if pa.types.is_map(kind):
            key = self.element(kind.key_field, ("key_value", "key"), "key")
            return key, self.element(kind.item_field, ("key_value", "value"), "value")
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return (self.element(kind.value_field, ("list", "element"), "element"),)
        return ()

    @property
    def has_children(self) -> bool:
        return bool(pa.types.is_nested(self.field.type))


def _walk(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children:
        yield from _walk(child)
