"""Rows give back their wire columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.archive.batches.wire_columns import ON_THE_WIRE
from archiver.archive.records import RecordParts
from archiver.files.translate import YEAR_1_MS, YEAR_9999_END_MS, Translator
from archiver.wire.columns import RECORDS
from schema_mapping import RawMapping, RowMapping
from schema_mapping.columns.fixed import KAFKA_FIELD
from tests.support.kafka.fetched_records import as_records

ROWS = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)
TIMES = st.sampled_from(
    [-1, 0, 1_700_000_000_123, YEAR_1_MS, YEAR_1_MS - 1, YEAR_9999_END_MS, YEAR_9999_END_MS + 1, -(2**63), 2**63 - 1]
)


def record(offset: int, **changes: Any) -> dict[str, Any]:
    return {
        "offset": offset,
        "timestamp": 5,
        "key": b"k",
        "value": None,
        "headers": [{"key": b"\xff", "value": None}],
        "batch_start": offset,
        "batch_end": offset,
        "timestamp_type": 0,
        "append_timestamp": None,
        "leader_epoch": 2,
        "producer_id": 3,
        "producer_epoch": 4,
        "base_sequence": 5,
        "attributes": 16,
    } | changes


def again(records: pa.RecordBatch, kafka: pa.StructArray) -> pa.RecordBatch:
    parts = {"keys": records["key"], "values": records["value"], "headers": records["headers"]}
    return ON_THE_WIRE.build(RecordParts(kafka=kafka, **parts))


@settings(deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(TIMES, st.none() | TIMES, st.sampled_from([-1, 0])), min_size=1, max_size=8))
def test_times_come_back(times: list[tuple[int, int | None, int]]):
    written = [
        record(position, timestamp=time, append_timestamp=append, timestamp_type=kind if append is None else 1)
        for position, (time, append, kind) in enumerate(times)
    ]
    records = pa.RecordBatch.from_pylist(written, RECORDS)
    ones = [1] * len(times)
    translator = Translator(ROWS, topic="t", partition=0, on_parse_error="halt")
    (translated,) = translator.translate(as_records(records, rows=ones, times=ones))
    for row in written:  # raw_timestamp keeps only the time that consumers see
        if row["append_timestamp"] is not None and not YEAR_1_MS <= row["append_timestamp"] <= YEAR_9999_END_MS:
            row["timestamp"] = row["timestamp"] if YEAR_1_MS <= row["timestamp"] <= YEAR_9999_END_MS else -1
    assert again(records, translated.rows["kafka"]).to_pylist() == written


@pytest.mark.parametrize(
    ("stored", "given"),
    [(0b110000, 0b010000), (0b101, 0), (0b1001100, 0b1001100), (None, 0)],
    ids=["control", "no such codec", "zstd, append, horizon", "null"],
)
def test_attributes_hide_no_record(stored: int | None, given: int):
    records = pa.RecordBatch.from_pylist([record(0)], RECORDS)
    row = dict.fromkeys(field.name for field in KAFKA_FIELD.type) | {"partition": 0, "offset": 0, "attributes": stored}
    result = again(records, pa.array([row], KAFKA_FIELD.type)).to_pylist()[0]
    assert result["attributes"] == given
    unknown = ("batch_start", "batch_end", "producer_id", "producer_epoch", "base_sequence", "leader_epoch")
    assert {result[name] for name in (*unknown, "timestamp", "timestamp_type")} == {-1}
