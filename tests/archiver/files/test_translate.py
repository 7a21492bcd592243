"""Rows against expectations written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from archiver.errors import ParseHalted
from archiver.files.records import Records
from archiver.files.translate import Translator, translate_headers, translate_timestamps
from archiver.wire.columns import HEADER_TYPE, RECORDS
from schema_mapping import RawMapping, RowMapping, compile_mapping
from schema_mapping.errors import RowsTooLargeError
from tests.support.kafka.fetched_records import PLAIN, as_records

EMPTY = PLAIN | {"key": None, "value": None, "attributes": 2}


def records(*rows: dict[str, Any]) -> pa.RecordBatch:
    first = {"offset": 10, "batch_start": 10, "batch_end": 12}
    return pa.RecordBatch.from_pylist([EMPTY | first | {"offset": 10 + i} | row for i, row in enumerate(rows)], RECORDS)


def group(*rows: dict[str, Any], batches: Sequence[int] = (), times: Sequence[int] = ()) -> Records:
    return as_records(records(*rows), rows=batches, times=times)


def translated(row: RowMapping, group: Records, *, partition: int = 0, **how: Any) -> list[pa.RecordBatch]:
    how = {"topic": "t", "on_parse_error": "pass_through"} | how
    return [done.rows for done in Translator(row, partition=partition, **how).translate(group)]


RAW = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=3)
TEXT = RowMapping(
    key=RawMapping(raw_id=100),
    value=compile_mapping(StringValue.DESCRIPTOR),
    schema_version=1,
    partition_source="flat",
)


def test_a_row_holds_all_that_a_consumer_gets():
    sent = group({"key": b"k", "value": b""}, {"value": b"v"}, {"key": b""}, batches=[1, 2], times=[5_000, 6_000])
    (rows,) = translated(RAW, sent, partition=7)
    rows.validate(full=True)
    assert rows.schema.equals(RAW.arrow_schema, check_metadata=True)
    first, second, third = rows.to_pylist()
    assert (first["key"], first["val"]) == ({"__raw__": b"k"}, {"__raw__": b""})
    assert (second["key"], second["val"]) == (None, {"__raw__": b"v"})
    assert (third["key"], third["val"]) == ({"__raw__": b""}, None)
    assert first["headers"] == []
    assert first["kafka"] == {
        "partition": 7,
        "offset": 10,
        "event_timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
        "ingest_timestamp": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC),
        "batch_start": 10,
        "batch_end": 12,
        "timestamp_type": 0,
        "append_timestamp": None,
        "raw_timestamp": None,
        "leader_epoch": 4,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "attributes": 2,
        "schema_version": 3,
    }
    assert [row["kafka"]["ingest_timestamp"].second for row in (first, second, third)] == [5, 6, 6]


def test_a_part_of_a_group_translates_alone():
    whole = group({"value": b"a"}, {"value": b"b", "headers": [{"key": b"h", "value": b"x"}]}, {}, batches=[1, 1, 1])
    (rows,) = translated(RAW, whole.part(1, 3, times=np.array([1, 2])), on_parse_error="halt")
    rows.validate(full=True)
    assert [row["kafka"]["offset"] for row in rows.to_pylist()] == [11, 12]
    assert [len(row["headers"]) for row in rows.to_pylist()] == [1, 0]


def test_the_flat_copy_equals_the_nested_time():
    (rows,) = translated(TEXT, group({}, times=[9]))
    (row,) = rows.to_pylist()
    assert row["ingest_timestamp"] == row["kafka"]["ingest_timestamp"]


@pytest.mark.parametrize(
    ("produced", "append", "expected"),
    [
        (-1, None, (None, None, None)),
        (-2, None, (-2_000, None, None)),
        (-62_135_596_800_000, None, (-62_135_596_800_000_000, None, None)),
        (-62_135_596_800_001, None, (None, None, -62_135_596_800_001)),
        (253_402_300_799_999, None, (253_402_300_799_999_000, None, None)),
        (253_402_300_800_000, None, (None, None, 253_402_300_800_000)),
        (2**63 - 1, None, (None, None, 2**63 - 1)),
        (-(2**63), None, (None, None, -(2**63))),
        (5, 7, (5_000, 7_000, None)),
        (2**62, 7, (None, 7_000, 2**62)),
        (5, -1, (5_000, -1_000, None)),
        (2**62, 2**61, (None, None, 2**61)),
    ],
)
def test_times_are_kept_exactly(produced: int, append: int | None, expected: tuple[int | None, ...]) -> None:
    kind = 0 if append is None else 1
    batch = records({"timestamp": produced, "append_timestamp": append, "timestamp_type": kind})
    columns = translate_timestamps(batch)
    assert tuple(column.cast(pa.int64())[0].as_py() for column in columns) == expected


def headers(*entries: list[tuple[bytes, bytes | None]]) -> pa.ListArray:
    return pa.array(
        [[{"key": key, "value": value} for key, value in row] for row in entries],
        pa.list_(pa.field("element", HEADER_TYPE, nullable=False)),
    )


def test_headers_keep_order_duplicates_and_empty_values():
    rows = translate_headers(headers([("ä".encode(), b"1"), (b"", None)], [], [(b"a", b""), (b"a", b"")]))
    rows.validate(full=True)
    plain = {"__raw_key__": None}
    assert rows.to_pylist() == [
        [{"key": "ä", "value": b"1"} | plain, {"key": "", "value": None} | plain],
        [],
        [{"key": "a", "value": b""} | plain] * 2,
    ]


def test_only_header_keys_that_are_not_utf8_are_kept_raw():
    rows = translate_headers(
        headers([(b"ok", b"1"), (b"\xff\x00", None)], [(b"\xff\x00", b""), (b"\xed\xa0\x80", b"")])
    )
    flat = [(entry["key"], entry["__raw_key__"]) for row in rows.to_pylist() for entry in row]
    assert flat[0] == ("ok", None)
    assert flat[1] == flat[2] == ("\ufffd\x00", b"\xff\x00")
    assert flat[3][1] == b"\xed\xa0\x80"
    assert set(flat[3][0]) == {"\ufffd"}


def test_halting_names_the_first_record_that_can_not_be_decoded():
    good = StringValue(value="x").SerializeToString()
    translator = Translator(TEXT, topic="orders", partition=2, on_parse_error="halt")
    translator.translate(group({"value": good}, {}))
    with pytest.raises(ParseHalted) as halted:
        translator.translate(group({"value": good}, {"value": b"\x0a\x05x"}, {"value": b"\xff"}))
    context = halted.value.context
    assert (context["topic"], context["partition"], context["offset"]) == ("orders", 2, 11)
    assert context["code"].startswith("truncated@")


def test_passing_through_keeps_what_can_not_be_decoded():
    (rows,) = translated(TEXT, group({"value": b"\x0a\x05x"}))
    (row,) = rows.to_pylist()
    assert row["val"]["__raw__"] == b"\x0a\x05x"
    assert row["val"]["__err__"].startswith("truncated@")


class Narrow(RawMapping):
    def decode(self, values: pa.BinaryArray) -> pa.StructArray:
        if len(values) > 2:
            raise RowsTooLargeError("too much for one column")
        return super().decode(values)


def test_rows_too_large_for_one_column_are_split():
    row = RowMapping(key=RawMapping(raw_id=100), value=Narrow(raw_id=101), schema_version=3)
    records = [{"value": b"%d" % number, "headers": [{"key": b"h", "value": b"x"}] * number} for number in range(7)]
    sent = group(*records, batches=[3, 4], times=[1_000, 2_000])
    parts = translated(row, sent)
    (whole,) = translated(RAW, sent)
    assert len(parts) > 1
    assert [value for part in parts for value in part.to_pylist()] == whole.to_pylist()
