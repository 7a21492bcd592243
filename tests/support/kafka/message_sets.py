"""Message sets v0 and v1, as before Kafka 0.11."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable

import cramjam

from tests.support.kafka.record_batches import xerial

LOG_APPEND = 0b1000


def message(
    offset: int,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    magic: int = 1,
    timestamp: int = -1,
    attributes: int = 0,
) -> bytes:
    def sized(octets: bytes | None) -> bytes:
        return struct.pack(">i", -1) if octets is None else struct.pack(">i", len(octets)) + octets

    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body += sized(key) + sized(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(
    offset: int,
    messages: Iterable[bytes],
    codec: str,
    *,
    magic: int = 1,
    timestamp: int = -1,
    attributes: int = 0,
    key: bytes | None = None,
) -> bytes:
    """`offset` is of the last message."""
    payload = b"".join(messages)
    number, value = {
        "gzip": (1, gzip.compress(payload)),
        "snappy": (2, xerial(payload)),
        "lz4": (3, lz4(payload, broken=magic == 0)),
        "lz4 right": (3, lz4(payload, broken=False)),
        "zstd": (4, bytes(cramjam.zstd.compress(payload))),
    }[codec]
    return message(offset, key, value, magic=magic, timestamp=timestamp, attributes=attributes | number)


def lz4(data: bytes, *, broken: bool) -> bytes:
    """If `broken`, the header checksum covers the magic number (KAFKA-3160)."""
    writer = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    writer.compress(data)
    frame = bytearray(bytes(writer.finish()))
    if broken:
        end = 14 if frame[4] & 8 else 6
        frame[end] = xxh32(bytes(frame[:end])) >> 8 & 0xFF
    return bytes(frame)


def xxh32(data: bytes) -> int:
    p1, p2, p3, p4, p5, mask = 2654435761, 2246822519, 3266489917, 668265263, 374761393, 0xFFFFFFFF

    def turned(word: int, by: int) -> int:
        return ((word << by) | (word >> (32 - by))) & mask

    assert len(data) < 16
    acc = p5 + len(data)
    whole = len(data) // 4
    for (lane,) in struct.iter_unpack("<I", data[: whole * 4]):
        acc = (turned((acc + lane * p3) & mask, 17) * p4) & mask
    for byte in data[whole * 4 :]:
        acc = (turned((acc + byte * p5) & mask, 11) * p1) & mask
    acc ^= acc >> 15
    acc = (acc * p2) & mask
    acc ^= acc >> 13
    acc = (acc * p3) & mask
    return acc ^ (acc >> 16)
