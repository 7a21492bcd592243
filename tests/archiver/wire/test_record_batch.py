"""Decoded records equal the built ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from archiver.wire import NO_TIME, RECORDS, DecodedBatches, decode_batches
from tests.support.kafka.record_batches import BUILDER_CODECS, Record, build, headers_of, patched, raw_batch, raw_record

INT64 = 1 << 63
LOG_APPEND = 0b1000


def decode(*batches: bytes, **options: Any) -> DecodedBatches:
    decoded = decode_batches(b"".join(batches), **({"start_offset": 0, "end_offset": INT64 - 1} | options))
    decoded.records.validate(full=True)
    assert decoded.records.schema == RECORDS
    return decoded


def rows(decoded: DecodedBatches) -> list[tuple[Any, ...]]:
    columns = [decoded.records.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value")]
    return list(zip(*columns, headers_of(decoded), strict=True))


@pytest.mark.parametrize(("builder", "codec"), BUILDER_CODECS)
def test_records_equal_what_was_built(builder: str, codec: str) -> None:
    records = [
        Record(),
        Record(timestamp=1_700_000_000_500, key=None, value=b""),
        Record(timestamp=1_699_999_999_000, key=b"", value=None),
        Record(key=b"\xff\x00", value=b"x" * 70_000),
        Record(headers=(("a", b"1"), ("a", None), ("", b""), ("ü", b"\xff"))),
        *(Record(value=b"%d" % number * 20) for number in range(500)),
    ]
    decoded = decode(build(records, base_offset=1000, codec=codec, builder=builder))
    assert rows(decoded) == [
        (
            1000 + position,
            record.timestamp,
            record.key,
            record.value,
            [(name.encode(), text) for name, text in record.headers],
        )
        for position, record in enumerate(records)
    ]
    assert (decoded.start_offset, decoded.next_offset, decoded.complete) == (0, 1505, False)


def test_header_fields_reach_every_row() -> None:
    batch = build(
        [Record(), Record()],
        base_offset=7,
        producer_id=4_000_000_000,
        producer_epoch=3,
        base_sequence=11,
        transactional=True,
        leader_epoch=5,
    )
    assert (
        decode(batch).records.drop_columns(["offset", "timestamp", "key", "value", "headers"]).to_pylist()
        == [
            {
                "batch_start": 7,
                "batch_end": 8,
                "timestamp_type": 0,
                "append_timestamp": None,
                "leader_epoch": 5,
                "producer_id": 4_000_000_000,
                "producer_epoch": 3,
                "base_sequence": 11,
                "attributes": 0b10000,
            }
        ]
        * 2
    )


def test_header_keys_and_values_may_be_any_bytes() -> None:
    headers = [(b"\xff\xfe", b"\x00"), (b"", None), (b"k", b""), (b"k", b"2"), (b"k", b"2")]
    assert headers_of(decode(raw_batch([raw_record(headers=headers), raw_record(delta=1)]))) == [headers, []]


@pytest.mark.parametrize(
    ("base", "delta", "expected"),
    [
        (0, -5, -5),
        (-1, 0, -1),
        (INT64 - 1, 1, -INT64),
        (-INT64, -1, INT64 - 1),
        (INT64 - 1, 0, INT64 - 1),
        (-INT64, 0, -INT64),
    ],
)
def test_timestamps_wrap_as_in_java(base: int, delta: int, expected: int) -> None:
    batch = raw_batch([raw_record(time_delta=delta)], base_timestamp=base)
    assert decode(batch).records.column("timestamp").to_pylist() == [expected]


def test_log_append_time_keeps_the_producers_time() -> None:
    decoded = decode(
        build([Record(timestamp=10), Record(timestamp=20)], attributes=LOG_APPEND, max_timestamp=99),
        build([Record(timestamp=30)], base_offset=2),
    )
    assert decoded.records.column("timestamp").to_pylist() == [10, 20, 30]
    assert decoded.records.column("timestamp_type").to_pylist() == [1, 1, 0]
    assert decoded.records.column("append_timestamp").to_pylist() == [99, 99, None]
    assert decoded.batches.append_timestamp.tolist() == [99, NO_TIME]


@pytest.mark.parametrize(
    ("times", "median"),
    [([5], 5), ([1, 2], 1), ([3, 1, 2], 2), ([9, 8, 7, 6], 7), ([-1, 5, 7], 5), ([-1, -1], NO_TIME), ([-9, -8], -9)],
)
def test_median_of_a_batch(times: list[int], median: int) -> None:
    batch = raw_batch(
        [raw_record(delta=position, time_delta=time) for position, time in enumerate(times)], base_timestamp=0
    )
    assert decode(batch).batches.median_timestamp.tolist() == [median]


def test_index_places_each_batch() -> None:
    batches = [build([Record()] * count, base_offset=at) for at, count in ((0, 3), (3, 1), (10, 2))]
    index = decode(*batches).batches
    assert index.base_offset.tolist() == [0, 3, 10]
    assert index.last_offset.tolist() == [2, 3, 11]
    assert index.first_row.tolist() == [0, 3, 4]
    assert index.rows.tolist() == [3, 1, 2]
    assert index.bytes.tolist() == [len(batch) for batch in batches]


def test_compacted_batches_have_gaps() -> None:
    gaps = build([Record()] * 3, base_offset=100, deltas=[2, 5, 6], last_delta=9)
    empty = patched(build([Record()]), base_offset=110, payload=b"", count=0, last_delta=4)
    decoded = decode(gaps, empty, start_offset=100)
    assert decoded.records.column("offset").to_pylist() == [102, 105, 106]
    assert decoded.records.column("batch_end").to_pylist() == [109] * 3
    assert len(decoded.batches) == 1
    assert decoded.next_offset == 115


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("payload", [b"", b"\0", b"whatever"])
def test_a_batch_of_no_records_holds_none_whatever_it_says(codec: int, payload: bytes) -> None:
    empty = patched(build([Record()]), payload=payload, count=0, last_delta=4, attributes=codec)
    decoded = decode(empty, build([Record()], base_offset=5))
    assert decoded.records.column("offset").to_pylist() == [5]
    assert decoded.next_offset == 6


def test_nothing_decodes_to_no_rows() -> None:
    decoded = decode()
    assert decoded.records.num_rows == len(decoded.batches) == 0
    assert (decoded.start_offset, decoded.next_offset, decoded.consumed, decoded.complete) == (0, 0, 0, False)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_input(kind: Any) -> None:
    assert decode_batches(kind(build([Record()])), start_offset=0, end_offset=1).records.num_rows == 1


def test_columns_outlive_the_input() -> None:
    data = bytearray(build([Record(value=b"kept")]))
    decoded = decode_batches(data, start_offset=0, end_offset=1)
    data[:] = bytes(len(data))
    assert decoded.records.column("value") == pa.array([b"kept"], pa.binary())
