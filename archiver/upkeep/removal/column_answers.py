"""Which rows have a value in a column, and of which rows the column doesn't tell.

A row that was never decoded has its bytes in `__raw__`, and fields that its schema didn't know in `__unrecognized__`:
what lies there is in no column. So nothing is said of a row whose field may be among it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.assemble import Mappings
from archiver.archive.deletes import Mask
from archiver.replay.where import Answer
from archiver.storage.row_columns import column_by_id
from archiver.upkeep.removal.column_values import Value
from archiver.upkeep.removal.table_columns import TableColumn
from schema_mapping import names
from schema_mapping.columns.fixed import KEY_ID, SCHEMA_VERSION_ID
from schema_mapping.row import RowMapping


class _Reach(Enum):
    """What a version of the schema knows of a column: nothing at all, all but this column, or the column."""

    NO_SCHEMA = auto()
    OTHER_COLUMNS = auto()
    COLUMN = auto()


def answer(asked: TableColumn, rows: pa.RecordBatch, mappings: Mappings) -> Answer:
    """For which rows the column has the value. Each row is judged by the version of the schema that wrote it."""
    there = _is_set(rows, asked.part_id)
    holds = _holds(asked, rows)
    unknown = _any(rows, (*filter(None, [asked.errors]), *asked.former))
    versions = column_by_id(rows, SCHEMA_VERSION_ID)
    for version in pc.unique(versions).to_pylist():
        reach = _reach(asked, mappings.row_mapping(version))
        if reach is _Reach.COLUMN and holds is not None:
            continue
        hidden = _any(rows, asked.unrecognized) if reach is _Reach.OTHER_COLUMNS else there
        unknown |= hidden & _true(pc.equal(versions, version))
    return Answer(np.zeros(rows.num_rows, np.bool_) if holds is None else holds, unknown)


def _holds(asked: TableColumn, rows: pa.RecordBatch) -> Mask | None:
    """For which rows the column has the value. None where others left the column out, or changed its type."""
    column = column_by_id(rows, asked.field_id)
    try:
        return None if column is None else _true(equal(column, asked.value))
    except pa.ArrowException:
        return None


def equal(column: pa.Array, value: Value) -> pa.Array:
    """Compare a column with a value: as numbers where both are, and floating ones as the column rounds them."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column, kind = column.storage, kind.storage_type
    if pa.types.is_floating(kind):
        rounded = pa.scalar(value, kind)
        return pc.and_(pc.equal(column, rounded), pc.is_finite(column))
    if isinstance(value, str | bytes):
        return pc.equal(column, pa.scalar(value, kind))
    return pc.equal(column, pa.scalar(value))


def _reach(asked: TableColumn, row: RowMapping) -> _Reach:
    mapping = row.key if asked.part_id == KEY_ID else row.value
    if mapping.arrow_type.get_field_index(names.UNRECOGNIZED) < 0:
        return _Reach.NO_SCHEMA
    return _Reach.COLUMN if asked.field_id in mapping.column_ids else _Reach.OTHER_COLUMNS


def _any(rows: pa.RecordBatch, field_ids: Iterable[int]) -> Mask:
    found = np.zeros(rows.num_rows, np.bool_)
    for each in field_ids:
        found |= _is_set(rows, each)
    return found


def _is_set(rows: pa.RecordBatch, field_id: int) -> Mask:
    column = column_by_id(rows, field_id)
    return np.zeros(rows.num_rows, np.bool_) if column is None else _true(column.is_valid())


def _true(answers: pa.Array) -> Mask:
    found: Mask = pc.fill_null(answers, fill_value=False).to_numpy(zero_copy_only=False)
    return np.array(found, np.bool_)
