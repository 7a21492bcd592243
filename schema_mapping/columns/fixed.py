"""Every table's columns and field ids, all below 100 (docs/concepts.md)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.columns.fixed_ids import (
    APPEND_TIMESTAMP_ID,
    ATTRIBUTES_ID,
    BASE_SEQUENCE_ID,
    BATCH_END_ID,
    BATCH_START_ID,
    EVENT_TIMESTAMP_ID,
    FLAT_INGEST_TIMESTAMP_ID,
    HEADER_KEY_ID,
    HEADER_VALUE_ID,
    HEADERS_ELEMENT_ID,
    HEADERS_ID,
    INGEST_TIMESTAMP_ID,
    KAFKA_ID,
    KEY_ID,
    LEADER_EPOCH_ID,
    OFFSET_ID,
    PARTITION_ID,
    PRODUCER_EPOCH_ID,
    PRODUCER_ID_ID,
    RAW_HEADER_KEY_ID,
    RAW_TIMESTAMP_ID,
    SCHEMA_VERSION_ID,
    TIMESTAMP_TYPE_ID,
    VAL_ID,
)

__all__ = [
    "APPEND_TIMESTAMP_ID",
    "ATTRIBUTES_ID",
    "BASE_SEQUENCE_ID",
    "BATCH_END_ID",
    "BATCH_START_ID",
    "EVENT_TIMESTAMP_ID",
    "FIXED_LEAVES",
    "FLAT_INGEST_FIELD",
    "FLAT_INGEST_TIMESTAMP_ID",
    "HEADERS_ELEMENT_ID",
    "HEADERS_FIELD",
    "HEADERS_ID",
    "HEADER_KEY_ID",
    "HEADER_TYPE",
    "HEADER_VALUE_ID",
    "INGEST_TIMESTAMP_ID",
    "KAFKA_FIELD",
    "KAFKA_ID",
    "KEY_ID",
    "LEADER_EPOCH_ID",
    "OFFSET_ID",
    "PARTITION_ID",
    "PRODUCER_EPOCH_ID",
    "PRODUCER_ID_ID",
    "RAW_HEADER_KEY_ID",
    "RAW_TIMESTAMP_ID",
    "SCHEMA_VERSION_ID",
    "TIMESTAMP",
    "TIMESTAMP_TYPE_ID",
    "VAL_ID",
]

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

HEADER_TYPE: Final = pa.struct(
    [
        arrow_field(names.HEADER_KEY, pa.string(), HEADER_KEY_ID, nullable=False),
        arrow_field(names.HEADER_VALUE, pa.binary(), HEADER_VALUE_ID),
        arrow_field(names.RAW_KEY, pa.binary(), RAW_HEADER_KEY_ID),
    ]
)

HEADERS_FIELD: Final = arrow_field(
    names.HEADERS,
    pa.list_(arrow_field(names.ELEMENT_NAME, HEADER_TYPE, HEADERS_ELEMENT_ID, nullable=False)),
    HEADERS_ID,
)

KAFKA_FIELD: Final = arrow_field(
    names.KAFKA,
    pa.struct(
        [
            arrow_field(names.PARTITION, pa.int32(), PARTITION_ID),
            arrow_field(names.OFFSET, pa.int64(), OFFSET_ID),
            arrow_field(names.EVENT_TIMESTAMP, TIMESTAMP, EVENT_TIMESTAMP_ID),
            arrow_field(names.INGEST_TIMESTAMP, TIMESTAMP, INGEST_TIMESTAMP_ID),
            arrow_field(names.BATCH_START, pa.int64(), BATCH_START_ID),
            arrow_field(names.BATCH_END, pa.int64(), BATCH_END_ID),
            arrow_field(names.TIMESTAMP_TYPE, pa.int32(), TIMESTAMP_TYPE_ID),
            arrow_field(names.APPEND_TIMESTAMP, TIMESTAMP, APPEND_TIMESTAMP_ID),
            arrow_field(names.RAW_TIMESTAMP, pa.int64(), RAW_TIMESTAMP_ID),
            arrow_field(names.LEADER_EPOCH, pa.int32(), LEADER_EPOCH_ID),
            arrow_field(names.PRODUCER_ID, pa.int64(), PRODUCER_ID_ID),
            arrow_field(names.PRODUCER_EPOCH, pa.int32(), PRODUCER_EPOCH_ID),
            arrow_field(names.BASE_SEQUENCE, pa.int32(), BASE_SEQUENCE_ID),
            arrow_field(names.ATTRIBUTES, pa.int32(), ATTRIBUTES_ID),
            arrow_field(names.SCHEMA_VERSION, pa.int32(), SCHEMA_VERSION_ID),
        ]
    ),
    KAFKA_ID,
)

FLAT_INGEST_FIELD: Final = arrow_field(names.INGEST_TIMESTAMP, TIMESTAMP, FLAT_INGEST_TIMESTAMP_ID)

# Leaf columns of `headers` and `kafka`, and the flat copy: they count against a table's budget of columns.
FIXED_LEAVES: Final = HEADER_TYPE.num_fields + KAFKA_FIELD.type.num_fields + 1
