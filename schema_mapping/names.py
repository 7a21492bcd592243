"""Names of added columns, and reserved steps. Fields never get names of `RESERVED`."""

from __future__ import annotations

from typing import Final

KEY: Final = "key"
VAL: Final = "val"
HEADERS: Final = "headers"
KAFKA: Final = "kafka"

RAW: Final = "__raw__"
ERR: Final = "__err__"
PREFIX: Final = "__prefix__"
FORM: Final = "__form__"
UNRECOGNIZED: Final = "__unrecognized__"
RAW_KEY: Final = "__raw_key__"

HEADER_KEY: Final = "key"
HEADER_VALUE: Final = "value"

PARTITION: Final = "partition"
OFFSET: Final = "offset"
EVENT_TIMESTAMP: Final = "event_timestamp"
INGEST_TIMESTAMP: Final = "ingest_timestamp"
BATCH_START: Final = "batch_start"
BATCH_END: Final = "batch_end"
TIMESTAMP_TYPE: Final = "timestamp_type"
APPEND_TIMESTAMP: Final = "append_timestamp"
RAW_TIMESTAMP: Final = "raw_timestamp"
LEADER_EPOCH: Final = "leader_epoch"
PRODUCER_ID: Final = "producer_id"
PRODUCER_EPOCH: Final = "producer_epoch"
BASE_SEQUENCE: Final = "base_sequence"
ATTRIBUTES: Final = "attributes"
SCHEMA_VERSION: Final = "schema_version"

ELEMENT_NAME: Final = "element"
MAP_KEY_NAME: Final = "key"
MAP_VALUE_NAME: Final = "value"

RESERVED: Final = frozenset({RAW, ERR, PREFIX, FORM, UNRECOGNIZED})

ELEMENT_STEP: Final = -1
MAP_KEY_STEP: Final = -2
MAP_VALUE_STEP: Final = -3
RAW_STEP: Final = -4
PREFIX_STEP: Final = -5
ERR_STEP: Final = -6
UNRECOGNIZED_STEP: Final = -7
FORM_STEP: Final = -8

MEMBER_STEP: Final = 1 << 29
"""Steps above this one lead to the message types of a key or value that has several. No field number is so large."""

NANOS_STEP: Final = -(1 << 29)
"""Steps below this one lead to the nanoseconds of a field's times: the difference is the field's number."""

NANOS_SUFFIX: Final = "_nanos"

STEP_NAMES: Final = {
    ELEMENT_STEP: ELEMENT_NAME,
    MAP_KEY_STEP: MAP_KEY_NAME,
    MAP_VALUE_STEP: MAP_VALUE_NAME,
    RAW_STEP: RAW,
    PREFIX_STEP: PREFIX,
    ERR_STEP: ERR,
    FORM_STEP: FORM,
    UNRECOGNIZED_STEP: UNRECOGNIZED,
}
