"""Compression of a batch's records, in the framings that Java's clients write and every client reads."""

from __future__ import annotations

import struct
from typing import Final, assert_never

import cramjam

from archiver.wire.codec import Codec

_GZIP_LEVEL: Final = 6
_ZSTD_LEVEL: Final = 3
_LZ4_LEVEL: Final = 1
_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 << 10


def deflate(codec: Codec, records: memoryview) -> bytes:
    """Compress the records of a batch, at the level that Kafka's clients have as their default."""
    match codec:
        case Codec.NONE:
            return bytes(records)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(records, level=_GZIP_LEVEL))
        case Codec.SNAPPY:
            return _snappy(records)
        case Codec.LZ4:
            return _lz4(records)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))
        case _:
            assert_never(codec)


def _snappy(records: memoryview) -> bytes:
    """Blocks as Java's snappy stream frames them."""
    parts = [_XERIAL_HEADER]
    for at in range(0, len(records), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(records[at : at + _XERIAL_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _lz4(records: memoryview) -> bytes:
    """A frame of independent blocks: Java's reader refuses linked ones."""
    writer = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
    writer.compress(bytes(records))
    return bytes(writer.finish())
