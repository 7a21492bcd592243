"""Merge the ledger's columns into a table that other engines may have changed (docs/schema-evolution.md).

A ledger column whose name is taken becomes `<name>_<field id>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from typing import TYPE_CHECKING, Self

from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from catalog.errors import SchemaConflict
from catalog.iceberg.bloom_filters import BloomFilters

if TYPE_CHECKING:
    from schema_mapping.field_ids import Assignment
    from schema_mapping.superseded import Superseded


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """Owned columns missing in the schema are dropped. The table must have `written_ids` at once.

    `bloom_filters` replace the table's unless None. `superseded` are older columns, by field id.
    """

    schema: Schema
    version: int
    owned_ids: frozenset[int]
    written_ids: frozenset[int] = frozenset()
    bloom_filters: BloomFilters | None = None
    superseded: Mapping[int, Superseded] = attribute(default_factory=dict)

    @classmethod
    def of(cls, assignment: Assignment, *, bloom_filters: BloomFilters | None = None) -> Self:
        from schema_mapping.superseded import superseded_columns

        return cls(
            schema=assignment.iceberg_schema,
            version=max(version.version for version in assignment.state.versions),
            owned_ids=frozenset(entry.field_id for entry in assignment.state.entries),
            written_ids=assignment.row.column_ids,
            bloom_filters=bloom_filters,
            superseded=superseded_columns(assignment.state),
        )

    def for_table(self, schema: Schema, version: int) -> Self | None:
        """None for no change. At the same version columns are only added: foreign changes stay."""
        if self.version > version:
            return self
        if self.version < version or self.written_ids <= schema.field_ids:
            return None
        return self.adding

    @property
    def adding(self) -> Self:
        return replace(self, owned_ids=frozenset())


def merge(change: SchemaChange, current: Schema) -> Schema:
    """Raises SchemaConflict for type changes other than widening."""
    fields = _merge_fields(change.schema.fields, current.fields, change.owned_ids)
    return Schema(*fields, identifier_field_ids=current.identifier_field_ids)


def check_new_ids(change: SchemaChange, *, last_field_id: int, last_column_id: int) -> None:
    """Raise SchemaConflict if another engine used ids that the ledger has assigned.

    `last_field_id` is the ledger's highest id, `last_column_id` the table's.
    """
    taken = sorted(number for number in change.schema.field_ids if last_field_id < number <= last_column_id)
    if taken:
        raise SchemaConflict(
            "columns were added to the table by others while the registry gave the same field ids to new columns of the"
            " topic: drop those columns, then archive again",
            field_ids=taken,
        )


def _merge_fields(
    ours: tuple[NestedField, ...], current: tuple[NestedField, ...], owned: frozenset[int]
) -> tuple[NestedField, ...]:
    by_id = {field.field_id: field for field in current}
    expected = {field.field_id for field in ours} | owned
    foreign = tuple(field for field in current if field.field_id not in expected)
    taken = {field.name.lower() for field in (*ours, *foreign)}
    foreign_names = {field.name.lower() for field in foreign}
    merged = []
    for field in ours:
        name = field.name
        while name.lower() in foreign_names or (name != field.name and name.lower() in taken):
            name = f"{name}_{field.field_id}"
        kind = _merge_types(field, by_id[field.field_id], owned) if field.field_id in by_id else field.field_type
        merged.append(field.model_copy(update={"name": name, "field_type": kind}))
    return (*merged, *foreign)


def _merge_types(ours: NestedField, current: NestedField, owned: frozenset[int]) -> IcebergType:
    expected, existing = ours.field_type, current.field_type
    match expected, existing:
        case StructType(), StructType():
            return StructType(*_merge_fields(expected.fields, existing.fields, owned))
        case ListType(), ListType() if expected.element_id == existing.element_id:
            element = _merge_types(expected.element_field, existing.element_field, owned)
            return ListType(expected.element_id, element, expected.element_required)
        case MapType(), MapType() if (expected.key_id, expected.value_id) == (existing.key_id, existing.value_id):
            value = _merge_types(expected.value_field, existing.value_field, owned)
            return MapType(expected.key_id, expected.key_type, expected.value_id, value, expected.value_required)
        case _ if expected == existing or _widens(existing, expected):
            return expected
        case _ if _widens(expected, existing):
            return existing
    raise SchemaConflict(
        "a column's type was changed by others so that ours no longer fits: change it back",
        column=current.name,
        field_id=ours.field_id,
        table_type=str(existing),
        our_type=str(expected),
    )


def _widens(narrow: IcebergType, wide: IcebergType) -> bool:
    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        return narrow.scale == wide.scale and narrow.precision < wide.precision
    return (type(narrow), type(wide)) in {(IntegerType, LongType), (FloatType, DoubleType)}
