"""The base class of compiled mappings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from schema_mapping.columns.expansion import CutStruct
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path
from schema_mapping.protobuf.arrow_types import root_type
from schema_mapping.protobuf.declared_fields import DeclaredFields, declared_type, field_name
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage, RootIds
from schema_mapping.protobuf.type_graph import TypeGraph
from schema_mapping.value_format import DeclaredField, ExcludedField

if TYPE_CHECKING:
    from pyiceberg.types import StructType


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CompiledColumns:
    """Equal by schema facts, options, `keep_raw` and ids.

    `keep_raw` sets `__raw__` for every value. `fingerprint` omits ids.
    """

    ids: ColumnIds
    keep_raw: bool
    options: MappingOptions
    fingerprint: str
    root: MappedMessage
    root_ids: RootIds
    cuts: tuple[CutStruct, ...]
    graph: TypeGraph

    @cached_property
    def arrow_type(self) -> pa.StructType:
        return root_type(self.root, self.root_ids)

    @cached_property
    def iceberg_type(self) -> StructType:
        from schema_mapping.columns.iceberg import iceberg_struct

        return iceberg_struct(self.arrow_type)

    @property
    def column_ids(self) -> frozenset[int]:
        return frozenset(column.field_id for column in self.ids.columns)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        return frozenset(_unknown_ids(self.root))

    def declared(self, path: Path) -> DeclaredField:
        field = self._declared.field(path)
        return DeclaredField(name=field_name(field), type=declared_type(field), is_enum=field.enum is not None)

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:
        fields = self._declared.message(path).excluded
        return tuple(
            ExcludedField(number=field.number, name=field_name(field), type=declared_type(field)) for field in fields
        )

    @cached_property
    def _declared(self) -> DeclaredFields:
        return DeclaredFields(self.graph)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompiledColumns) or type(other) is not type(self):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.fingerprint, self.keep_raw, self.ids


def _unknown_ids(message: MappedMessage) -> Iterator[int]:
    """Cut messages and messages with excluded fields keep known fields."""
    if not message.excluded:
        yield message.unrecognized_id
    for field in message.fields:
        mapped: MappedField = field.value or field
        if mapped.message is not None:
            yield from _unknown_ids(mapped.message)
