"""Columns of archived rows by field id. Times are in ms since 1970; -1 means none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping import names
from schema_mapping.columns.arrow import FIELD_ID_KEY

NO_TIMESTAMP = -1
LOG_APPEND_TIME = 1
MICROS_PER_MILLI = 1_000


def field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    return None if text is None else int(text)


def list_values(kind: pa.DataType) -> pa.Field | None:
    return kind.value_field if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None


def find_field(schema: pa.Schema, identifier: int) -> tuple[int, ...] | None:
    """Through structs; None without such a field."""
    return _position(schema, identifier)


def column_by_id(rows: pa.RecordBatch, identifier: int) -> pa.Array | None:
    """Find at any depth; null below a null struct."""
    path = _position(rows.schema, identifier)
    if path is None:
        return None
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def record_timestamps(kafka: pa.StructArray) -> pa.Int64Array:
    """Return the timestamp that a consumer gets; never null.

    `raw_timestamp` has milliseconds beyond the table's microseconds.
    """
    event = _millis(kafka.field(names.EVENT_TIMESTAMP))
    append = _millis(kafka.field(names.APPEND_TIMESTAMP))
    is_append = pc.equal(kafka.field(names.TIMESTAMP_TYPE), pa.scalar(LOG_APPEND_TIME, pa.int32()))
    shown = pc.if_else(pc.fill_null(is_append, fill_value=False), append, event)
    return pc.fill_null(pc.coalesce(shown, kafka.field(names.RAW_TIMESTAMP)), NO_TIMESTAMP)


@dataclass(slots=True)
class RowTotals:
    """`raw_values` counts values in `__raw__`.

    `timestamps` are the bounds of consumers' timestamps.
    """

    rows: int = 0
    raw_values: int = 0
    timestamps: tuple[int, int] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        raw = pc.struct_field(batch.column(names.VAL), names.RAW)
        self.raw_values += len(raw) - raw.null_count
        shown = record_timestamps(batch.column(names.KAFKA))
        bounds = pc.min_max(shown.filter(pc.not_equal(shown, NO_TIMESTAMP)))
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None:
            before = self.timestamps or (low, high)
            self.timestamps = (min(before[0], low), max(before[1], high))


def _position(fields: Iterable[pa.Field], identifier: int) -> tuple[int, ...] | None:
    fields = list(fields)
    position = next((index for index, field in enumerate(fields) if field_id(field) == identifier), None)
    if position is not None:
        return (position,)
    for index, field in enumerate(fields):
        below = _position(field.type, identifier) if pa.types.is_struct(field.type) else None
        if below is not None:
            return (index, *below)
    return None


def _millis(column: pa.Array) -> pa.Int64Array:
    return pc.divide(column.cast(pa.int64()), pa.scalar(MICROS_PER_MILLI, pa.int64()))
