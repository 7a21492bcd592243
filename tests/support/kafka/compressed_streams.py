"""Compressed records with trailing bytes, which Java's consumer ignores."""

from __future__ import annotations

import gzip

import cramjam

from tests.support.kafka.record_batches import HEADER, Record, build, xerial

PLAIN = build([Record(value=b"%d" % number * 30) for number in range(200)])
PAYLOAD = PLAIN[HEADER.size :]


def lz4(data: bytes, *, checked: bool = False) -> bytes:
    writer = cramjam.lz4.Compressor(level=1, content_checksum=checked, block_linked=False)
    writer.compress(data)
    return bytes(writer.finish())


HALF = len(PAYLOAD) // 2


WITH_TRAILING_BYTES = {
    "gzip and zeros": (1, gzip.compress(PAYLOAD) + bytes(40)),
    "gzip and garbage": (1, gzip.compress(PAYLOAD) + b"garbage" * 9),
    "gzip and half a header": (1, gzip.compress(PAYLOAD) + gzip.compress(b"")[:8]),
    "two gzip members and garbage": (1, gzip.compress(PAYLOAD[:HALF]) + gzip.compress(PAYLOAD[HALF:]) + b"z" * 70_000),
    "lz4 and garbage": (3, lz4(PAYLOAD) + b"garbage"),
    "lz4 and zeros": (3, lz4(PAYLOAD) + bytes(8)),
    "lz4 with a content checksum and garbage": (3, lz4(PAYLOAD, checked=True) + b"g"),
    "two of Java's snappy streams": (2, xerial(PAYLOAD[:HALF]) + xerial(PAYLOAD[HALF:])),
    "Java's snappy frames and half a length": (2, xerial(PAYLOAD) + bytes(2)),
}
"""By name: the number of the codec, and the records compressed with it, with trailing bytes."""
