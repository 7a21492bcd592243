"""Converts archived rows to `archiver.wire.RECORDS`.

Batch columns that rewritten files lack are -1; `batch_start` -1 means unknown borders.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.records import KAFKA_IDS, RecordParts, RecordShape
from archiver.codecs import Codec
from archiver.storage.row_columns import LOG_APPEND_TIME, MICROS_PER_MILLI, NO_TIMESTAMP
from archiver.wire import attributes
from archiver.wire.columns import RECORDS
from schema_mapping import names
from schema_mapping.columns.fixed import (
    ATTRIBUTES_ID,
    BASE_SEQUENCE_ID,
    BATCH_END_ID,
    BATCH_START_ID,
    PRODUCER_EPOCH_ID,
    PRODUCER_ID_ID,
)

UNKNOWN: Final = -1


def _wire_records(parts: RecordParts) -> pa.RecordBatch:
    kafka = parts.kafka
    types = _known(kafka.field(names.TIMESTAMP_TYPE))
    timestamp, append_timestamp = _times(kafka, pc.equal(types, LOG_APPEND_TIME))
    columns = [
        kafka.field(names.OFFSET),
        timestamp,
        parts.keys,
        parts.values,
        parts.headers,
        _known(kafka.field(names.BATCH_START)),
        _known(kafka.field(names.BATCH_END)),
        types,
        append_timestamp,
        _known(kafka.field(names.LEADER_EPOCH)),
        _known(kafka.field(names.PRODUCER_ID)),
        _known(kafka.field(names.PRODUCER_EPOCH)),
        _known(kafka.field(names.BASE_SEQUENCE)),
        _attributes(kafka.field(names.ATTRIBUTES)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def _times(kafka: pa.StructArray, is_append: pa.BooleanArray) -> tuple[pa.Array, pa.Array]:
    """`raw_timestamp` replaces timestamps that don't fit their column; -1 is none."""
    event, append = (_millis(kafka.field(name)) for name in (names.EVENT_TIMESTAMP, names.APPEND_TIMESTAMP))
    raw = kafka.field(names.RAW_TIMESTAMP)
    none = pa.scalar(None, pa.int64())
    if append.null_count == raw.null_count == len(raw) and not pc.any(is_append).as_py():
        return _known(event), append
    raw_is_append = pc.and_(is_append, append.is_null())
    produced = pc.fill_null(pc.coalesce(event, pc.if_else(raw_is_append, none, raw)), NO_TIMESTAMP)
    return produced, pc.if_else(is_append, pc.fill_null(pc.coalesce(append, raw), NO_TIMESTAMP), none)


def _attributes(column: pa.Int32Array) -> pa.Int32Array:
    """Drop bits that no archived batch has: clients would skip control records or fail at unknown codecs."""
    bits = pc.fill_null(column, 0).to_numpy() & ~attributes.CONTROL
    return pa.array(np.where(bits & attributes.CODEC > max(Codec), bits & ~attributes.CODEC, bits), pa.int32())


def _millis(column: pa.Array) -> pa.Int64Array:
    return pc.divide(column.cast(pa.int64()), pa.scalar(MICROS_PER_MILLI, pa.int64()))


def _known(column: pa.Array) -> pa.Array:
    return pc.fill_null(column, UNKNOWN) if column.null_count else column


ON_THE_WIRE: Final = RecordShape(
    required=KAFKA_IDS,
    optional=frozenset(
        (BATCH_START_ID, BATCH_END_ID, PRODUCER_ID_ID, PRODUCER_EPOCH_ID, BASE_SEQUENCE_ID, ATTRIBUTES_ID)
    ),
    is_streamed=True,
    build=_wire_records,
)
"""The shape with the columns of `archiver.wire.RECORDS`: records with the fields of their batches."""
