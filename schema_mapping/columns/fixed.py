"""The columns that every table has, and their field ids, all below 100 (docs/concepts.md)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.arrow import arrow_field

KEY_ID: Final = 1
VAL_ID: Final = 2
HEADERS_ID: Final = 3
KAFKA_ID: Final = 4
HEADERS_ELEMENT_ID: Final = 5
HEADER_KEY_ID: Final = 6
HEADER_VALUE_ID: Final = 7
RAW_HEADER_KEY_ID: Final = 8
PARTITION_ID: Final = 10
OFFSET_ID: Final = 11
EVENT_TIMESTAMP_ID: Final = 12
INGEST_TIMESTAMP_ID: Final = 13
BATCH_START_ID: Final = 14
BATCH_END_ID: Final = 15
TIMESTAMP_TYPE_ID: Final = 16
APPEND_TIMESTAMP_ID: Final = 17
RAW_TIMESTAMP_ID: Final = 18
LEADER_EPOCH_ID: Final = 19
PRODUCER_ID_ID: Final = 20
PRODUCER_EPOCH_ID: Final = 21
BASE_SEQUENCE_ID: Final = 22
ATTRIBUTES_ID: Final = 23
SCHEMA_VERSION_ID: Final = 24
FLAT_INGEST_TIMESTAMP_ID: Final = 30

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
