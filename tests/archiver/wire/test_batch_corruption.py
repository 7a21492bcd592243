"""Corrupt batches are named."""

from __future__ import annotations

import random

import pytest

from archiver.errors import ArchiverError, CorruptBatch
from archiver.wire import AbortedTransaction, DecodedBatches, DecodeLimits, decode_batches
from tests.support.kafka.record_batches import (
    HEADER,
    Record,
    build,
    headers_of,
    marker,
    offsets,
    patched,
    raw_batch,
    raw_record,
    varint,
)

FIRST = build([Record(), Record(key=None, value=b"", headers=(("a", b"1"), ("b", None)))], base_offset=5)
SECOND = build([Record(value=b"x" * 40, headers=(("h", b"v"),))] * 4, base_offset=20, codec="gzip")
PLAIN = build([Record(key=b"k" * 3, value=b"v" * 5, headers=(("n", b"t"), ("m", None)))] * 3)
LIMITS = DecodeLimits(chunk=1 << 20, batch=1 << 20)


def decode(data: bytes) -> DecodedBatches:
    decoded = decode_batches(
        data,
        aborted=[AbortedTransaction(producer_id=1, first_offset=0)],
        start_offset=0,
        end_offset=1 << 40,
        limits=LIMITS,
    )
    decoded.records.validate(full=True)
    return decoded


def outcome(data: bytes) -> tuple[int, ArchiverError | None]:
    try:
        return decode(data).records.num_rows, None
    except CorruptBatch as error:
        return 0, error


def test_every_truncation_gives_the_whole_batches() -> None:
    for size in range(len(FIRST + SECOND)):
        expected = [] if size < len(FIRST) else [5, 6]
        assert offsets(decode((FIRST + SECOND)[:size])) == expected


def test_every_bit_flip_is_found_or_harmless() -> None:
    data = FIRST + SECOND
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        in_first = bit // 8 < len(FIRST)
        position = bit // 8 if in_first else bit // 8 - len(FIRST)
        rows, error = outcome(bytes(flipped))
        if (
            error is None
        ):  # the checksum covers neither base offset nor leader epoch; a longer length makes a partial batch
            assert position < 16
            assert rows in (0, 2, 6)
        else:
            assert position < 8 or error.context["base_offset"] == (5 if in_first else 20)


@pytest.mark.parametrize("batch", [FIRST, PLAIN, SECOND], ids=["first", "plain", "gzip"])
def test_bit_flips_with_a_checksum_that_agrees(batch: bytes) -> None:
    payload = batch[HEADER.size :]
    for bit in range(len(payload) * 8):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << (bit % 8)
        _, error = outcome(patched(batch, payload=bytes(flipped)))
        assert error is None or "base_offset" in error.context


def test_truncated_records_with_a_checksum_that_agrees() -> None:
    payload = PLAIN[HEADER.size :]
    for size in range(len(payload)):
        with pytest.raises(CorruptBatch):
            decode(patched(PLAIN, payload=payload[:size]))


def test_random_records_with_a_checksum_that_agrees() -> None:
    draw = random.Random(1)
    for _ in range(20_000):
        payload = bytearray(PLAIN[HEADER.size :])
        for _ in range(draw.randrange(1, 6)):
            payload[draw.randrange(len(payload))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        _, error = outcome(patched(PLAIN, payload=bytes(payload), count=draw.choice((0, 1, 3, 4, -1)), last_delta=9))
        assert error is None or "base_offset" in error.context


def test_a_damaged_control_batch_ends_no_transaction() -> None:
    batch = bytearray(marker(base_offset=0, producer_id=1, commit=False))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        decode(bytes(batch))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\x80\x80\x80\x80\x80\x01\0\0", "varint"),
        (b"\x80" * 8, "varint"),
        (varint(1000) + b"\0" * 50, "record's length"),
        (varint(-1) + b"\0" * 10, "record's length"),
        (varint(2) + b"\0" * 10, "record's length"),
        (varint(14) + b"\0" + b"\xff" * 10 + b"\0" * 20, "varint"),
        (varint(8) + b"\0\0\0" + varint(60) + b"\0" * 20, "key's length"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(60) + b"\0" * 20, "value's length"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(-1) + b"\0\0", "number of headers"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(2) + b"\0\0", "number of headers"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + b"\1\0", "header key's length"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + b"\0\4", "header value's length"),
        (varint(8) + b"\0\0\0" + varint(-1) + varint(-1) + varint(0) + b"\0\0", "after its last header"),
        (raw_record() + b"\0", "after its last record"),
    ],
)
def test_each_contradiction_is_named(record: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason) as caught:
        decode(raw_batch([record], base_offset=77))
    assert caught.value.context["base_offset"] == 77


@pytest.mark.parametrize("deltas", [(0, 0, 0), (2, 1, 0), (0, 2, 1), (-1, 0, 1), (0, 1, 3), (1, 2, 3), (5, 5, -7)])
def test_offsets_that_do_not_rise_are_the_places_in_the_batch(deltas: tuple[int, ...]) -> None:
    records = [raw_record(delta=delta, value=b"%d" % position) for position, delta in enumerate(deltas)]
    decoded = decode(FIRST + raw_batch(records, base_offset=10) + SECOND)
    assert offsets(decoded) == [5, 6, 10, 11, 12, 20, 21, 22, 23]
    assert decoded.records.column("value").to_pylist()[2:5] == [b"0", b"1", b"2"]
    assert decoded.records.column("batch_end").to_pylist()[2:5] == [12] * 3


def test_offsets_that_do_not_rise_and_records_without_room() -> None:
    headers = [(b"name", b"x" * 3000), (b"", None)]
    records = [raw_record(delta=7 - position, value=bytes(9000), headers=headers, key=None) for position in range(8)]
    decoded = decode(raw_batch(records))
    assert offsets(decoded) == list(range(8))
    assert decoded.records.column("key").null_count == 8
    assert headers_of(decoded) == [headers] * 8


def test_more_records_than_offsets() -> None:
    with pytest.raises(CorruptBatch, match="more records than offsets"):
        decode(raw_batch([raw_record(delta=1), raw_record(delta=1)], last_delta=0))


def test_a_head_is_cut_by_offsets_as_given() -> None:
    batch = raw_batch([raw_record(delta=0, value=b"%d" % position) for position in range(4)], base_offset=10)
    decoded = decode_batches(batch, start_offset=12, end_offset=99, cut_head=True)
    assert offsets(decoded) == [12, 13]
    assert decoded.records.column("value").to_pylist() == [b"2", b"3"]


@pytest.mark.parametrize("count", [-1, 2, 1_000_000, (1 << 31) - 1])
def test_a_count_that_the_batch_cannot_hold(count: int) -> None:
    with pytest.raises(CorruptBatch):
        decode(raw_batch([raw_record()], count=count))


def test_batches_must_follow_one_another() -> None:
    with pytest.raises(CorruptBatch, match="do not follow") as caught:
        decode(FIRST + FIRST)
    assert caught.value.context == {"base_offset": 5, "position": len(FIRST)}
    with pytest.raises(CorruptBatch, match="do not follow"):
        decode(raw_batch([], last_delta=-1))
    with pytest.raises(CorruptBatch, match="do not follow"):
        decode(raw_batch([], base_offset=-1))
    with pytest.raises(CorruptBatch, match="do not follow"):
        decode(raw_batch([], base_offset=(1 << 63) - 1, last_delta=1))
