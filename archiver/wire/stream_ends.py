"""Where a compressed stream ends that has more bytes behind it: Java's reader passes over them in gzip and lz4.

Asked only where a payload is no stream from end to end.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

_PIECE: Final = 1 << 16
_GZIP: Final = 31
"""What zlib calls deflate in gzip's header and trailer."""

_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_FLAGS_AT: Final = 4
_LZ4_HEADER: Final = 7
_LZ4_CONTENT_SIZE: Final = 0b1000
_LZ4_DICTIONARY: Final = 0b1
_LZ4_BLOCK_CHECKSUM: Final = 0b10000
_LZ4_CONTENT_CHECKSUM: Final = 0b100
_LZ4_LENGTH: Final = 0x7FFFFFFF
_WORD: Final = 4


def gzip_end(payload: memoryview, limit: int) -> int:
    """Where the last whole member ends of those that `payload` begins with; 0 if there is none within `limit` bytes."""
    end = 0
    while end < len(payload):
        size, room = _member(payload[end:], limit)
        if size == 0:
            break
        end += size
        limit = room
    return end


def _member(payload: memoryview, limit: int) -> tuple[int, int]:
    """The size of the gzip member that `payload` begins with, 0 if it is none, and what it leaves of `limit`."""
    stream = zlib.decompressobj(_GZIP)
    try:
        for at in range(0, len(payload), _PIECE):
            piece = payload[at : at + _PIECE]
            limit -= len(stream.decompress(piece))
            if stream.eof:
                return at + len(piece) - len(stream.unused_data), limit
            if limit < 0:
                break
    except zlib.error:
        pass
    return 0, limit


def lz4_end(payload: memoryview, _limit: int) -> int:
    """Where the frame ends that `payload` begins with; 0 if that is none, or not there to its end."""
    if len(payload) <= _LZ4_FLAGS_AT or payload[: len(_LZ4_MAGIC)].tobytes() != _LZ4_MAGIC:
        return 0
    flags = payload[_LZ4_FLAGS_AT]
    at = _LZ4_HEADER + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY else 0)
    while len(payload) - at >= _WORD:
        (length,) = struct.unpack_from("<I", payload, at)
        at += _WORD
        if length == 0:
            at += _WORD if flags & _LZ4_CONTENT_CHECKSUM else 0
            return at if at <= len(payload) else 0
        at += (length & _LZ4_LENGTH) + (_WORD if flags & _LZ4_BLOCK_CHECKSUM else 0)
    return 0
