"""Iceberg types with field ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from schema_mapping import names
from schema_mapping.columns.arrow import DOC_KEY, arrow_field, field_id_of, scalar_arrow_type
from schema_mapping.columns.docs import one_line
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, Root
from schema_mapping.columns.ledger_tree import ROOT_IDS
from schema_mapping.columns.paths import field_step, is_nanos, is_required
from schema_mapping.columns.shape import ROOT_SPECIALS
from schema_mapping.columns.types import ColumnType

PRIMITIVES: dict[pa.DataType, PrimitiveType] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.time64("us"): TimeType(),
    pa.timestamp("us"): TimestampType(),
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
    pa.uuid(): UUIDType(),
}


def iceberg_struct(struct: pa.StructType) -> StructType:
    return StructType(*(iceberg_field(field) for field in struct))


def iceberg_field(field: pa.Field) -> NestedField:
    doc = field.metadata.get(DOC_KEY)
    return NestedField(
        field_id=field_id_of(field),
        name=field.name,
        field_type=_type(field.type),
        required=not field.nullable,
        doc=None if doc is None else doc.decode(),
    )


def _type(kind: pa.DataType) -> IcebergType:
    if pa.types.is_struct(kind):
        return iceberg_struct(kind)
    if pa.types.is_list(kind):
        element = kind.value_field
        return ListType(
            element_id=field_id_of(element), element=_type(element.type), element_required=not element.nullable
        )
    if pa.types.is_map(kind):
        return MapType(
            key_id=field_id_of(kind.key_field),
            key_type=_type(kind.key_type),
            value_id=field_id_of(kind.item_field),
            value_type=_type(kind.item_type),
            value_required=not kind.item_field.nullable,
        )
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    return PRIMITIVES[kind]


def ledger_field(
    root: Root, entries: Iterable[LedgerEntry], *, keep_removed: bool, written: Container[int] = ()
) -> pa.Field:
    """Deleted columns only with `keep_removed`, or if `written`."""
    below: defaultdict[int, list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        if entry.root == root and (keep_removed or entry.state is ColumnState.LIVE or entry.field_id in written):
            below[entry.parent_id].append(entry)
    for children in below.values():
        children.sort(key=column_order)
    top = ROOT_IDS[root]
    return arrow_field(root, _ledger_struct(top, below, parent_live=True), top)


def column_order(entry: LedgerEntry) -> tuple[int, int, bool, int]:
    """Numbered fields, named fields, then added columns.

    Numbers ascend, oldest generation first, nanoseconds after their field. Names are in order of first appearance.
    """
    step = entry.path[-1]
    match field_step(step):
        case str():
            return 1, entry.field_id, False, 0
        case number if number > 0:
            return 0, number, is_nanos(step), entry.generation
        case special:
            return 2, ROOT_SPECIALS.index(special) if special in ROOT_SPECIALS else 0, False, 0


def _ledger_struct(parent: int, below: Mapping[int, list[LedgerEntry]], *, parent_live: bool) -> pa.StructType:
    return pa.struct([_ledger_field(entry, below, parent_live=parent_live) for entry in below.get(parent, ())])


def _ledger_field(entry: LedgerEntry, below: Mapping[int, list[LedgerEntry]], *, parent_live: bool) -> pa.Field:
    live = entry.state is ColumnState.LIVE
    doc = _removed(entry) if parent_live and not live else entry.doc
    nullable = not is_required(entry.path)
    return arrow_field(entry.name, _ledger_type(entry, below), entry.field_id, nullable=nullable, doc=doc)


def _removed(entry: LedgerEntry) -> str:
    text = f"removed in schema version {entry.deleted_version}"
    return text if entry.doc is None else one_line(f"{text}: {entry.doc}")


def _ledger_type(entry: LedgerEntry, below: Mapping[int, list[LedgerEntry]]) -> pa.DataType:
    scalar = scalar_arrow_type(entry.type)
    if scalar is not None:
        return scalar
    struct = _ledger_struct(entry.field_id, below, parent_live=entry.state is ColumnState.LIVE)
    match entry.type:
        case ColumnType.LIST:
            return pa.list_(struct.field(names.ELEMENT_NAME))
        case ColumnType.MAP:
            return pa.map_(struct.field(names.MAP_KEY_NAME), struct.field(names.MAP_VALUE_NAME))
        case _:
            return struct
