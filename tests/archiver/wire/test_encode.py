"""Encoded batches, in other libraries."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from archiver.codecs import Codec
from archiver.errors import UnencodableBatch
from archiver.wire import RECORDS, BatchEncoder, decode_batches, encode_batches
from tests.support.kafka.message_sets import LOG_APPEND, message, wrapper
from tests.support.kafka.record_batches import BUILDER_CODECS, HEADER, Record, build, patched, raw_batch, raw_record

INT64 = 1 << 63
RICH = [
    Record(timestamp=1_700_000_000_000, headers=(("a", b"1"), ("a", None), ("", b""), ("ü", b"\xff"))),
    Record(timestamp=1_700_000_000_500, key=None, value=b""),
    Record(timestamp=1_699_999_999_000, key=b"", value=None),
    Record(timestamp=1_699_999_999_000, key=b"\xff\x00", value=b"x" * 70_000),
    *(Record(timestamp=1_700_000_000_000 + position, value=b"%d" % position * 20) for position in range(300)),
]


def columns(data: bytes, **options: Any) -> pa.RecordBatch:
    decoded = decode_batches(data, **({"start_offset": 0, "end_offset": INT64 - 1} | options))
    return decoded.records


def read(batch: memoryview) -> list[tuple[Any, ...]]:
    reader = DefaultRecordBatch(bytes(batch))
    assert reader.validate_crc()
    return [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in reader]


@pytest.mark.parametrize("builder", ["kafka-python", "aiokafka"])
def test_the_bytes_of_other_libraries(builder: str) -> None:
    parts = [
        build(RICH, base_offset=3, builder=builder, leader_epoch=7),
        build(RICH[1:3], base_offset=400, builder=builder, leader_epoch=8, producer_id=1 << 40, producer_epoch=32_000),
        build(RICH[:2], base_offset=402, builder=builder, producer_id=9, producer_epoch=1, base_sequence=(1 << 31) - 1),
        build(RICH, base_offset=410, builder=builder, transactional=True, producer_id=9, producer_epoch=1),
        build(RICH[:3], base_offset=1000, builder=builder, attributes=LOG_APPEND, max_timestamp=1_800_000_000_000),
        build(RICH[:3], base_offset=1010, builder=builder, deltas=[2, 5, 6], last_delta=1 << 20),
    ]
    encoded = encode_batches(columns(b"".join(parts)))
    assert bytes(encoded.data) == b"".join(parts)
    assert [bytes(encoded.batch(index)) for index in range(len(encoded))] == parts
    assert encoded.base_offset.tolist() == [3, 400, 402, 410, 1000, 1010]
    assert encoded.last_offset.tolist() == [306, 401, 403, 713, 1002, 1010 + (1 << 20)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_few_batches_at_a_time_are_those_of_all(codec: str) -> None:
    sizes = (1, 2, 5, 40, 300)
    records = columns(
        b"".join(build(RICH[:size], base_offset=1000 * size * size, codec=codec) for size in sorted(sizes))
    )
    everything, encoder = encode_batches(records), BatchEncoder(records)
    plain = encode_batches(records, compression=Codec.NONE)
    assert encoder.sizes.tolist() == np.diff(plain.position).tolist()
    for first in range(len(encoder) + 1):
        for end in range(first, len(encoder) + 1):
            some = encoder.write(first, end)
            assert [bytes(some.batch(index)) for index in range(len(some))] == [
                bytes(everything.batch(index)) for index in range(first, end)
            ]
            assert some.last_offset.tolist() == everything.last_offset[first:end].tolist()


@pytest.mark.parametrize(("first", "end"), [(-1, 1), (1, 0), (0, 2)])
def test_batches_that_are_not_there_are_refused(first: int, end: int) -> None:
    with pytest.raises(IndexError, match="there are 1 batches"):
        BatchEncoder(columns(build(RICH)))._writer.write(first, end)


@pytest.mark.parametrize(("builder", "codec"), BUILDER_CODECS)
def test_another_library_reads_the_same_in_every_codec(builder: str, codec: str) -> None:
    batch = build(RICH, base_offset=5, builder=builder, codec=codec)
    records = columns(batch)
    encoded = encode_batches(records)
    assert encoded.batch(0)[22] & 7 == Codec[codec.upper()]
    assert read(encoded.batch(0)) == read(memoryview(batch))
    assert columns(encoded.data) == records


@pytest.mark.parametrize("codec", list(Codec))
def test_one_codec_for_all(codec: Codec) -> None:
    batches = (
        build(RICH, codec="gzip")
        + build(RICH, base_offset=1000)
        + build(RICH, base_offset=2000, codec="lz4", builder="aiokafka")
    )
    records = columns(batches)
    again = columns(encode_batches(records, compression=codec).data)
    assert again.column("attributes").to_pylist() == [int(codec)] * len(RICH) * 3
    assert again.drop_columns(["attributes"]) == records.drop_columns(["attributes"])


def test_lz4_frames_have_independent_blocks_as_java_demands() -> None:
    encoded = encode_batches(columns(build(RICH)), compression=Codec.LZ4)
    assert encoded.batch(0)[HEADER.size + 4] & 0b0110_0000 == 0b0110_0000


def test_lz4_blocks_that_would_grow_are_kept_plain() -> None:
    noise = random.Random(1).randbytes(150_000)
    encoded = encode_batches(columns(build([Record(value=noise)])), compression=Codec.LZ4)
    assert len(encoded.data) < len(noise) + 200
    assert [value[3] for value in read(encoded.batch(0))] == [noise]


@pytest.mark.parametrize(
    ("base", "deltas"),
    [(0, (-5, 3)), (-1, (0, 0)), (INT64 - 1, (0, 1)), (-INT64, (0, -1)), (-INT64, (0, INT64 - 1)), (INT64 - 1, (0, 5))],
)
def test_timestamps_wrap_as_in_java(base: int, deltas: tuple[int, int]) -> None:
    batch = raw_batch([raw_record(delta=at, time_delta=delta) for at, delta in enumerate(deltas)], base_timestamp=base)
    records = columns(batch)
    again = columns(encode_batches(records).data)
    assert again == records


def test_extremes_come_back() -> None:
    headers = [(b"\xff\xfe%d" % position, None if position % 3 else b"") for position in range(10_000)]
    batch = raw_batch(
        [
            raw_record(headers=headers),
            raw_record(delta=1, key=None, value=None),
            raw_record(delta=(1 << 31) - 1, key=b"", value=b"v" * 5_000_000, headers=[(b"", None)]),
        ],
        base_offset=1 << 62,
        base_timestamp=0,
        max_timestamp=0,
        last_delta=(1 << 31) - 1,
    )
    assert bytes(encode_batches(columns(batch)).data) == batch


def test_rows_that_were_removed_leave_a_valid_batch() -> None:
    records = columns(build(RICH, base_offset=10) + build(RICH, base_offset=1000))
    kept = records.filter(pa.array([position not in (0, 1, 303, 310) for position in range(records.num_rows)]))
    encoded = encode_batches(kept)
    assert encoded.last_offset.tolist() == [313, 1303]
    assert columns(encoded.data) == kept
    assert [value[0] for value in read(encoded.batch(0))] == kept.column("offset").to_pylist()[:301]


def test_slices_and_nothing() -> None:
    records = columns(build(RICH, base_offset=0) + build(RICH, base_offset=1000))
    sliced = records.slice(7, 400)
    assert columns(encode_batches(sliced).data) == sliced
    assert (len(encode_batches(records.slice(0, 0))), bytes(encode_batches(records.slice(0, 0)).data)) == (0, b"")


def test_a_delete_horizon_is_not_kept() -> None:
    horizon = patched(build([Record(timestamp=50)]), attributes=0b100_0000)
    encoded = encode_batches(columns(horizon))
    assert encoded.batch(0)[22] == 0
    assert read(encoded.batch(0)) == read(memoryview(build([Record(timestamp=50)])))


def test_message_sets_become_batches() -> None:
    old = message(0, magic=0) + wrapper(3, [message(at, timestamp=at) for at in range(3)], "gzip")
    old += message(4, timestamp=9, attributes=LOG_APPEND)
    again = columns(encode_batches(columns(old)).data)
    assert again.column("offset").to_pylist() == list(range(5))
    assert again.column("timestamp_type").to_pylist() == [0, 0, 0, 0, 1]
    assert again.column("timestamp").to_pylist() == [-1, 0, 1, 2, -1]
    assert again.column("append_timestamp").to_pylist() == [None] * 4 + [9]
    assert again.column("batch_start").to_pylist() == [0, 1, 1, 1, 4]


def changed(records: pa.RecordBatch, **values: list[int]) -> pa.RecordBatch:
    for name, given in values.items():
        index = records.schema.get_field_index(name)
        records = records.set_column(index, RECORDS.field(name), pa.array(given, RECORDS.field(name).type))
    return records


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"offset": [5, 5, 9]}, "do not rise"),
        ({"offset": [5, 4, 9]}, "do not rise"),
        ({"offset": [4, 6, 9]}, "outside the batch"),
        ({"offset": [5, 7, 9]}, "outside the batch"),
        ({"batch_end": [4, 4, 9]}, "ends before it begins"),
        ({"batch_end": [9, 9, 9]}, "before the end of the one before"),
        ({"batch_start": [-5, -5, 9]}, "begins"),
        ({"batch_end": [5 + (1 << 31)] * 2 + [1 << 40], "batch_start": [5, 5, 1 << 39]}, "begins"),
        ({"attributes": [7, 7, 0]}, "no codec"),
    ],
)
def test_rows_that_make_no_batch(values: dict[str, list[int]], reason: str) -> None:
    records = columns(build([Record(), Record()], base_offset=5) + build([Record()], base_offset=9))
    with pytest.raises(UnencodableBatch, match=reason) as caught:
        encode_batches(changed(records, **values))
    assert "base_offset" in caught.value.context


@pytest.mark.parametrize("rows", [1, 2])
def test_a_batch_above_two_gib_is_refused_before_it_is_written(rows: int) -> None:
    untouched = np.zeros(1_200_000_000, np.uint8)
    ends = np.linspace(0, len(untouched), rows + 1).astype(np.int32)
    large = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(untouched)])
    records = columns(build([Record()] * rows, base_offset=5))
    for name in ("key", "value"):
        records = records.set_column(records.schema.get_field_index(name), RECORDS.field(name), large)
    with pytest.raises(UnencodableBatch, match="2147483647 bytes") as caught:
        encode_batches(records)
    assert caught.value.context == {"base_offset": 5}


def test_columns_that_are_not_those_of_records() -> None:
    with pytest.raises(ValueError, match="not the columns of records"):
        encode_batches(pa.record_batch({"offset": [1]}))
