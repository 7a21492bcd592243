"""Evaluate conditions on columns.

A row with `__raw__` or `__unrecognized__` bytes, or a former column of the field, is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum, auto
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.assemble import Mappings
from archiver.archive.deletes import Mask
from archiver.records.column_values import Value
from archiver.records.possible import may_be, may_match
from archiver.records.table_columns import TableColumn
from archiver.records.where import COMPARE, MATCHES, Answer
from archiver.records.where_syntax import BytesAre, Comparison, Match
from archiver.storage.row_columns import column_by_id, field_id, find_field
from archiver.storage.segment import Block, SegmentReader
from schema_mapping import names
from schema_mapping.columns.fixed import KEY_ID, SCHEMA_VERSION_ID
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping


class _Reach(Enum):
    NO_SCHEMA = auto()
    OTHER_MESSAGES = auto()
    OTHER_COLUMNS = auto()
    COLUMN = auto()


def answer(asked: TableColumn, rows: pa.RecordBatch, mappings: Mappings) -> Answer:
    holds = _holds(asked, rows)
    unknown = unknown_rows(asked, rows, mappings, has_values=holds is not None)
    return Answer(np.zeros(rows.num_rows, np.bool_) if holds is None else holds, unknown)


def unknown_rows(asked: TableColumn, rows: pa.RecordBatch, mappings: Mappings, *, has_values: bool) -> Mask:
    """Rows whose column doesn't say whether they have a value.

    `has_values` is false if the rows lack the column, or have it in another type.
    """
    present = _is_set(rows, asked.part_id)
    unknown = _any(rows, (*filter(None, [asked.errors]), *asked.former))
    versions = column_by_id(rows, SCHEMA_VERSION_ID)
    for version in pc.unique(versions).to_pylist():
        mapping = _part(asked, mappings.row_mapping(version))
        reach = _reach(asked, mapping)
        if reach is _Reach.COLUMN and has_values:
            continue
        is_told = reach is _Reach.OTHER_COLUMNS and not _left_out(asked, rows, mapping)
        hidden = _any(rows, asked.unrecognized) if is_told else present
        unknown |= hidden & _true(pc.equal(versions, version))
    return unknown


def ids_to_read(columns: Iterable[TableColumn], schema: pa.Schema) -> frozenset[int]:
    """Whole keys or values if the file has none of the columns."""
    ids = {SCHEMA_VERSION_ID}
    for column in columns:
        own = (column.field_id, *column.unrecognized, *column.former)
        ids.update((*own, *filter(None, [column.errors])))
        if column.part_id == KEY_ID or all(find_field(schema, identifier) is None for identifier in own):
            ids.add(column.part_id)
    return frozenset(ids)


def is_absent(asked: TableColumn, block: Block, reader: SegmentReader, mappings: Mappings) -> bool:
    """Whether the footer proves that no row matches or is unknown."""
    if not speaks_for_all(asked, block, reader, mappings):
        return False
    counts = reader.set_counts(block, frozenset((asked.field_id,)))
    return counts.get(asked.field_id) == 0 or _is_outside(asked, reader.value_bounds(block, asked.field_id))


def speaks_for_all(asked: TableColumn, block: Block, reader: SegmentReader, mappings: Mappings) -> bool:
    """Whether the field's values are only in this column."""
    ids = _ids(reader.schema)
    versions = reader.metadata.mappings
    if asked.field_id not in ids or not versions:
        return False
    if not all(has_column(asked, mappings.row_mapping(version)) for version in versions):
        return False
    hidden = ids.intersection((*filter(None, [asked.errors]), *asked.former))
    counts = reader.set_counts(block, hidden)
    return all(counts.get(field_id) == 0 for field_id in hidden)


def has_column(asked: TableColumn, row: RowMapping) -> bool:
    """Whether a version's rows have the field's values in this column."""
    return _reach(asked, _part(asked, row)) is _Reach.COLUMN


def _is_outside(asked: TableColumn, bounds: tuple[int, int] | tuple[bytes, bytes] | None) -> bool:
    value, comparison = asked.value, asked.comparison
    if bounds is None or isinstance(value, bool):
        return False
    low, high = bounds
    if isinstance(low, int) and isinstance(high, int) and is_comparison(comparison):
        return isinstance(value, int) and not may_be(comparison, value, low, high)
    if isinstance(low, bytes) and isinstance(high, bytes) and isinstance(value, str | bytes):
        octets = value.encode() if isinstance(value, str) else value
        return not may_match(BytesAre("value", comparison, octets), low, high)
    return False


def _ids(schema: pa.Schema) -> frozenset[int]:
    ids: set[int] = set()
    fields = list(schema)
    while fields:
        field = fields.pop()
        ids.update(filter(None, [field_id(field)]))
        if pa.types.is_struct(field.type):
            fields += list(field.type)
    return frozenset(ids)


def _holds(asked: TableColumn, rows: pa.RecordBatch) -> Mask | None:
    """None if the column is missing or has another type."""
    column = column_by_id(rows, asked.field_id)
    try:
        return None if column is None else _true(compared(column, asked.comparison, asked.value))
    except pa.ArrowException:
        return None


def compared(column: pa.Array, comparison: Comparison | Match, value: Value) -> pa.Array:
    """Numerically if both are numbers, with the column's rounding.

    Texts and bytes compare by their bytes. NaN only differs from numbers.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column, kind = column.storage, kind.storage_type
    compare = COMPARE[comparison]
    if comparison in MATCHES:
        return compare(column, pattern=value)
    if pa.types.is_floating(kind):
        return _compared_floats(column, comparison, value)
    if isinstance(value, str | bytes):
        return compare(column, pa.scalar(value, kind))
    return compare(column, pa.scalar(value))


def _compared_floats(column: pa.Array, comparison: Comparison | Match, value: Value) -> pa.Array:
    rounded = pa.scalar(value, column.type)
    if comparison in ("=", "!="):
        equal = pc.and_(pc.equal(column, rounded), pc.is_finite(column))
        return equal if comparison == "=" else pc.invert(equal)
    bound = rounded.as_py() if math.isfinite(rounded.as_py()) else value  # larger than any number of the column
    return COMPARE[comparison](column.cast(pa.float64()), pa.scalar(bound, pa.float64()))


def is_comparison(comparison: Comparison | Match) -> TypeGuard[Comparison]:
    return comparison not in MATCHES


def _part(asked: TableColumn, row: RowMapping) -> ValueMapping:
    return row.key if asked.part_id == KEY_ID else row.value


def _reach(asked: TableColumn, mapping: ValueMapping) -> _Reach:
    if mapping.arrow_type.get_field_index(names.UNRECOGNIZED) < 0:
        return _Reach.NO_SCHEMA
    if asked.field_id in mapping.column_ids:
        return _Reach.COLUMN
    is_foreign = asked.messages and asked.messages.isdisjoint(mapping.messages)
    return _Reach.OTHER_MESSAGES if is_foreign else _Reach.OTHER_COLUMNS


def _left_out(asked: TableColumn, rows: pa.RecordBatch, mapping: ValueMapping) -> bool:
    written = mapping.column_ids.intersection(asked.former)
    return any(column_by_id(rows, identifier) is None for identifier in written)


def _any(rows: pa.RecordBatch, field_ids: Iterable[int]) -> Mask:
    mask = np.zeros(rows.num_rows, np.bool_)
    for identifier in field_ids:
        mask |= _is_set(rows, identifier)
    return mask


def _is_set(rows: pa.RecordBatch, field_id: int) -> Mask:
    """An empty list or map isn't set."""
    column = column_by_id(rows, field_id)
    if column is None:
        return np.zeros(rows.num_rows, np.bool_)
    is_set = _true(column.is_valid())
    if pa.types.is_map(column.type) or pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        is_set &= np.diff(column.offsets.to_numpy()) > 0
    return is_set


def _true(answers: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(answers, fill_value=False).to_numpy(zero_copy_only=False)
    return np.array(mask, np.bool_)
