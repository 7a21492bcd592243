"""The columns of records in Arrow: RECORDS, or another RecordShape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.row_columns import field_id, record_timestamps
from schema_mapping import names
from schema_mapping.columns.fixed import (
    APPEND_TIMESTAMP_ID,
    EVENT_TIMESTAMP_ID,
    KAFKA_FIELD,
    LEADER_EPOCH_ID,
    OFFSET_ID,
    PARTITION_ID,
    RAW_TIMESTAMP_ID,
    SCHEMA_VERSION_ID,
    TIMESTAMP_TYPE_ID,
)
from schema_mapping.value_format import SHOWN_FIELDS

HEADER: Final = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])

RECORDS: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER, nullable=False)), nullable=False),
    ]
)
"""`timestamp` is in ms, -1 for none; `timestamp_type` is -1 (none), 0 (create time) or 1 (log append)."""

LEADER_EPOCH: Final = pa.field("leader_epoch", pa.int32())

ASSEMBLED: Final = RECORDS.append(LEADER_EPOCH)
"""RECORDS and the leader epoch of their batch."""

KAFKA_IDS: Final = frozenset(
    (
        PARTITION_ID,
        OFFSET_ID,
        EVENT_TIMESTAMP_ID,
        TIMESTAMP_TYPE_ID,
        APPEND_TIMESTAMP_ID,
        RAW_TIMESTAMP_ID,
        LEADER_EPOCH_ID,
        SCHEMA_VERSION_ID,
    )
)
"""The field ids in `kafka` that records need."""


SHOWN: Final = pa.struct([pa.field(name, pa.string()) for name in SHOWN_FIELDS])
"""A key or value as JSON, or the reason why it has none. All null: it has no schema."""

DECODED: Final = (
    RECORDS.append(pa.field("schema_version", pa.int32()))
    .append(pa.field("shown_key", SHOWN))
    .append(pa.field("shown_value", SHOWN))
)
"""RECORDS, and keys and values shown by the schema that wrote their row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordParts:
    """Only a shape that `shows` has shown columns, of type SHOWN."""

    kafka: pa.StructArray
    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: pa.ListArray
    shown_keys: pa.StructArray | None = None
    shown_values: pa.StructArray | None = None


@dataclass(frozen=True, kw_only=True)
class RecordShape:
    """`required` are field ids that every file must have. `shows` adds JSON; `is_streamed` saves CPU."""

    required: frozenset[int]
    optional: frozenset[int] = frozenset()
    shows: bool = False
    is_streamed: bool = False
    build: Callable[[RecordParts], pa.RecordBatch]

    @cached_property
    def ids(self) -> frozenset[int]:
        return self.required | self.optional

    @cached_property
    def kafka_type(self) -> pa.StructType:
        return pa.struct([field for field in KAFKA_FIELD.type if field_id(field) in self.ids])

    @cached_property
    def optional_names(self) -> frozenset[str]:
        return frozenset(
            f"{names.KAFKA}.{field.name}" for field in KAFKA_FIELD.type if field_id(field) in self.optional
        )


def _consumed(parts: RecordParts) -> list[pa.Array]:
    kafka = parts.kafka
    return [
        kafka.field(names.PARTITION),
        kafka.field(names.OFFSET),
        pc.fill_null(kafka.field(names.TIMESTAMP_TYPE), -1),
        record_timestamps(kafka),
        parts.keys,
        parts.values,
        parts.headers,
    ]


def _assembled(parts: RecordParts) -> pa.RecordBatch:
    columns = [*_consumed(parts), parts.kafka.field(names.LEADER_EPOCH)]
    return pa.RecordBatch.from_arrays(columns, schema=ASSEMBLED)


def _decoded(parts: RecordParts) -> pa.RecordBatch:
    columns = [*_consumed(parts), parts.kafka.field(names.SCHEMA_VERSION), parts.shown_keys, parts.shown_values]
    return pa.RecordBatch.from_arrays(columns, schema=DECODED)


AS_CONSUMED: Final = RecordShape(required=KAFKA_IDS, build=_assembled)
"""The shape with the columns of ASSEMBLED: records as a consumer sees them."""

AS_DECODED: Final = RecordShape(required=KAFKA_IDS, build=_decoded, shows=True)
"""The shape with the columns of DECODED: for people, who read messages rather than bytes."""
