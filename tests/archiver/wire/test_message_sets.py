"""Message sets v0 and v1."""

from __future__ import annotations

import gzip
from contextlib import suppress
from typing import Any

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from archiver.errors import CorruptBatch
from archiver.wire import NO_TIME, DecodedBatches, DecodeLimits, decode_batches
from tests.support.kafka.message_sets import LOG_APPEND, message, wrapper
from tests.support.kafka.record_batches import Record, build, offsets, patched

CODECS = ("gzip", "snappy", "lz4")


def decode(data: bytes, **options: Any) -> DecodedBatches:
    decoded = decode_batches(data, **({"start_offset": 0, "end_offset": 1 << 40} | options))
    decoded.records.validate(full=True)
    return decoded


def columns(decoded: DecodedBatches, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(decoded.records.column(name).to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_what_another_library_builds_and_reads(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    given = [(None, b""), (b"", None), (b"key", b"value" * 30), (b"\xff\x00", b"x" * 70_000)]
    for position, (key, value) in enumerate(given):
        assert builder.append(position, timestamp=1000 + position, key=key, value=value)
    data = bytes(builder.build())
    if codec:  # as the broker does: the wrapper's offset is the last message's
        data = wrapper(3, [gzip.decompress(data[34 if magic else 26 :])], "gzip", magic=magic)
    decoded = decode(data)
    read = []
    records = MemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        read += [(record.offset, record.key, record.value) for record in batch]
    assert columns(decoded, "offset", "key", "value") == [(at, *pair) for at, pair in enumerate(given)] == read
    times = [-1] * 4 if magic == 0 else [1000, 1001, 1002, 1003]
    assert decoded.records.column("timestamp").to_pylist() == times
    assert decoded.records.column("timestamp_type").to_pylist() == [-1 if magic == 0 else 0] * 4


@pytest.mark.parametrize("codec", [*CODECS, "lz4 right"])
def test_offsets_are_absolute_in_v0_and_relative_in_v1(codec: str) -> None:
    v0 = wrapper(14, [message(at, magic=0, value=b"%d" % at) for at in (10, 12, 14)], codec, magic=0)
    v1 = wrapper(20, [message(at, value=b"%d" % at) for at in (0, 1, 4)], codec)
    decoded = decode(v0 + v1)
    assert columns(decoded, "offset", "value", "batch_start", "batch_end") == [
        (10, b"10", 10, 14),
        (12, b"12", 10, 14),
        (14, b"14", 10, 14),
        (16, b"0", 16, 20),
        (17, b"1", 16, 20),
        (20, b"4", 16, 20),
    ]
    assert decoded.batches.base_offset.tolist() == [10, 16]
    assert decoded.batches.bytes.tolist() == [len(v0), len(v1)]
    assert (decoded.start_offset, decoded.next_offset, decoded.consumed) == (0, 21, len(v0 + v1))


def test_what_a_batch_has_that_a_message_has_not() -> None:
    decoded = decode(message(3, magic=0) + wrapper(5, [message(0), message(1)], "gzip"))
    assert columns(decoded, "batch_start", "batch_end", "attributes") == [(3, 3, 0), (4, 5, 1), (4, 5, 1)]
    for name in ("leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        assert decoded.records.column(name).to_pylist() == [-1] * 3
    assert decoded.records.column("headers").to_pylist() == [[]] * 3


def test_times_are_those_of_javas_reader() -> None:
    inner = [message(0, timestamp=5), message(1, timestamp=-1)]
    decoded = decode(
        message(0, magic=0)
        + message(1, timestamp=7)
        + message(2, timestamp=70, attributes=LOG_APPEND)
        + wrapper(4, inner, "gzip", timestamp=90)
        + wrapper(6, inner, "gzip", timestamp=99, attributes=LOG_APPEND)
    )
    assert columns(decoded, "timestamp_type", "timestamp", "append_timestamp") == [
        (-1, -1, None),
        (0, 7, None),
        (1, -1, 70),
        (0, 5, None),
        (0, -1, None),
        (1, 5, 99),
        (1, -1, 99),
    ]
    assert decoded.batches.append_timestamp.tolist() == [NO_TIME, NO_TIME, 70, NO_TIME, 99]
    assert decoded.batches.median_timestamp.tolist() == [NO_TIME, 7, NO_TIME, 5, 5]


def test_all_formats_in_one_response() -> None:
    data = (
        message(0, magic=0)
        + wrapper(2, [message(at, magic=0) for at in (1, 2)], "lz4", magic=0)
        + wrapper(5, [message(at) for at in range(3)], "snappy")
        + build([Record(), Record()], base_offset=6, leader_epoch=4)
        + message(8)
    )
    assert offsets(decode(data)) == list(range(9))
    for size in range(len(data)):
        assert offsets(decode(data[:size])) == list(range(len(offsets(decode(data[:size])))))


def test_ranges_own_sets_by_their_first_offset() -> None:
    data = wrapper(2, [message(at) for at in range(3)], "gzip") + wrapper(5, [message(at) for at in range(3)], "gzip")
    head, tail = decode(data, end_offset=2), decode(data, start_offset=2)
    assert (offsets(head), head.next_offset, head.complete) == ([0, 1, 2], 3, True)
    assert (offsets(tail), tail.start_offset, tail.next_offset) == ([3, 4, 5], 3, 6)
    between = decode(data, end_offset=3)
    assert (offsets(between), between.next_offset, between.complete) == ([0, 1, 2], 3, True)
    assert offsets(decode(data, start_offset=1, cut_head=True)) == [1, 2, 3, 4, 5]


def test_chunks_end_between_sets() -> None:
    data = b"".join(wrapper(at + 1, [message(0), message(1)], "gzip") for at in (0, 2, 4))
    seen: list[int] = []
    start = 0
    while len(seen) < 6:
        piece = decode(data, start_offset=start, limits=DecodeLimits(chunk=1))
        assert len(offsets(piece)) == 2
        seen += offsets(piece)
        data, start = data[piece.consumed :], piece.next_offset
    assert seen == list(range(6))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(0)[:-1] + b"w", "checksum"),
        (wrapper(0, [message(0)], "gzip")[:-1] + b"w", "checksum"),
        (wrapper(0, [message(0)[:-1] + b"w"], "gzip"), "checksum"),
        (wrapper(0, [], "gzip"), "there is none"),
        (wrapper(0, [message(0)], "zstd"), "codec 4 does not exist in format v1"),
        (wrapper(0, [message(0, magic=0)], "zstd", magic=0), "codec 4 does not exist in format v0"),
        (wrapper(1, [message(0), message(1, magic=0)], "gzip"), "format is not that of its wrapper"),
        (wrapper(0, [wrapper(0, [message(0)], "gzip")], "gzip"), "compressed itself"),
        (wrapper(5, [message(1), message(1)], "gzip"), "does not rise"),
        (wrapper(5, [message(5, magic=0), message(4, magic=0)], "gzip", magic=0), "does not rise|do not follow"),
        (wrapper(1, [message(0), message(5)], "gzip"), "do not follow"),
        (wrapper(1 << 40, [message(0, magic=0), message(1, magic=0)], "gzip", magic=0), "do not follow"),
        (wrapper(1 << 40, [message(0), message(1 << 31)], "gzip"), "do not follow"),
        (message(0, attributes=1, value=None), "there are none"),
        (message(0, attributes=2, value=b"\x00not snappy"), "corrupt|claims"),
        (message(3) + message(3), "do not follow"),
        (message(-1), "do not follow"),
    ],
    ids=lambda given: given if isinstance(given, str) else "data",  # gzip's bytes differ from second to second
)
def test_contradictions_are_named(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason) as caught:
        decode(data)
    assert "base_offset" in caught.value.context


def test_set_ending_in_a_partial_message_gives_whole_ones() -> None:
    assert offsets(decode(wrapper(6, [message(0), message(1), message(2)[:-1]], "gzip"))) == [5, 6]


def test_every_bit_flip_is_found_or_harmless() -> None:
    data = (
        message(0, magic=0)
        + message(1, timestamp=5)
        + wrapper(3, [message(0), message(1, None, b"")], "snappy")
        + build([Record()], base_offset=4)
    )
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        with suppress(CorruptBatch):
            decoded = decode(bytes(flipped), limits=DecodeLimits(chunk=1 << 20, batch=1 << 20))
            assert decoded.records.num_rows <= 5


def test_flipped_bits_in_a_set_whose_checksums_agree() -> None:
    inner = message(0, b"key", b"value") + message(1)
    for bit in range(len(inner) * 8):
        flipped = bytearray(inner)
        flipped[bit // 8] ^= 1 << (bit % 8)
        with suppress(CorruptBatch):
            assert decode(wrapper(9, [bytes(flipped)], "gzip")).records.num_rows <= 2


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_formats_that_do_not_exist(magic: int) -> None:
    batch = bytearray(patched(build([Record()])))
    batch[16] = magic & 0xFF
    with pytest.raises(CorruptBatch, match="format does not exist"):
        decode(bytes(batch))
