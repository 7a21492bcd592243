"""Every table's field ids, all below 100. Loads no Arrow."""

from __future__ import annotations

from typing import Final

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
