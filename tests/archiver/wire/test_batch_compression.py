"""All codecs and framings, and inflated batches."""

from __future__ import annotations

import gzip
import struct

import cramjam
import pytest

from archiver.errors import CorruptBatch
from archiver.wire import DecodedBatches, DecodeLimits, decode_batches
from tests.support.kafka.compressed_streams import PAYLOAD, PLAIN, WITH_TRAILING_BYTES
from tests.support.kafka.record_batches import HEADER, Record, build, compressed, xerial

ZEROS = build([Record(value=bytes(8_000_000))], builder="aiokafka")
SMALL = DecodeLimits(chunk=1 << 20, batch=4 << 20)


def zstd_stream(data: bytes) -> bytes:
    stream = cramjam.zstd.Compressor()
    for at in range(0, len(data), 1000):
        stream.compress(data[at : at + 1000])
    return bytes(stream.finish())


FRAMINGS = {
    "gzip": (1, gzip.compress(PAYLOAD)),
    "gzip in two members": (1, gzip.compress(PAYLOAD[:500]) + gzip.compress(PAYLOAD[500:])),
    "snappy bare": (2, bytes(cramjam.snappy.compress_raw(PAYLOAD))),
    "snappy in Java's frames": (2, xerial(PAYLOAD)),
    "snappy in one Java frame": (2, xerial(PAYLOAD, block=1 << 20)),
    "lz4": (3, bytes(cramjam.lz4.compress(PAYLOAD))),
    "zstd": (4, bytes(cramjam.zstd.compress(PAYLOAD))),
    "zstd without content size": (4, zstd_stream(PAYLOAD)),
    "zstd in two frames": (4, bytes(cramjam.zstd.compress(PAYLOAD[:500])) + zstd_stream(PAYLOAD[500:])),
}


def decode(batch: bytes, limits: DecodeLimits | None = None) -> DecodedBatches:
    return decode_batches(batch, start_offset=0, end_offset=1 << 40, limits=limits or DecodeLimits())


@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_framing(framing: str) -> None:
    codec, payload = FRAMINGS[framing]
    records = decode(compressed(PLAIN, codec, payload)).records
    expected = decode(PLAIN).records
    assert records.drop_columns(["attributes"]) == expected.drop_columns(["attributes"])


@pytest.mark.parametrize("framing", WITH_TRAILING_BYTES)
@pytest.mark.parametrize("limits", [None, DecodeLimits(chunk=1 << 20, batch=50_000)])
def test_bytes_after_a_stream_are_passed_over_as_java_does(framing: str, limits: DecodeLimits | None) -> None:
    codec, payload = WITH_TRAILING_BYTES[framing]
    records = decode(compressed(PLAIN, codec, payload), limits).records
    expected = decode(PLAIN).records
    assert records.drop_columns(["attributes"]) == expected.drop_columns(["attributes"])


@pytest.mark.parametrize("framing", FRAMINGS)
def test_truncated_and_garbled_payloads(framing: str) -> None:
    codec, payload = FRAMINGS[framing]
    for wrong in (b"", payload[:-9], payload[: len(payload) // 2], b"\xff" * 100):
        with pytest.raises(CorruptBatch, match="records of a batch") as caught:
            decode(compressed(PLAIN, codec, wrong), SMALL)
        assert caught.value.context["base_offset"] == 0


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(codec: int) -> None:
    with pytest.raises(CorruptBatch, match="does not exist"):
        decode(compressed(PLAIN, codec, PAYLOAD))


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (1, gzip.compress(ZEROS[HEADER.size :])),
        (2, bytes(cramjam.snappy.compress_raw(ZEROS[HEADER.size :]))),
        (3, bytes(cramjam.lz4.compress(ZEROS[HEADER.size :]))),
        (4, bytes(cramjam.zstd.compress(ZEROS[HEADER.size :]))),
        (4, zstd_stream(ZEROS[HEADER.size :])),
    ],
)
def test_a_batch_larger_than_the_limit_is_refused_not_inflated(codec: int, payload: bytes) -> None:
    batch = compressed(ZEROS, codec, payload)
    with pytest.raises(CorruptBatch, match=str(4 << 20)):
        decode(batch, SMALL)
    assert decode(batch).records.num_rows == 1


def test_snappy_that_claims_gigabytes() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\0" * 100
    for payload in (claim, b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(claim)) + claim):
        with pytest.raises(CorruptBatch, match="claims"):
            decode(compressed(PLAIN, 2, payload))


@pytest.mark.parametrize("size", [-1, 1 << 30])
def test_java_frames_with_impossible_lengths(size: int) -> None:
    payload = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, size) + b"abc"
    with pytest.raises(CorruptBatch, match="does not fit"):
        decode(compressed(PLAIN, 2, payload))


def test_many_small_records_count_against_the_limit() -> None:
    batch = build([Record(timestamp=0, key=None, value=None)] * 60_000)
    with pytest.raises(CorruptBatch, match="limit"):
        decode(batch, SMALL)
