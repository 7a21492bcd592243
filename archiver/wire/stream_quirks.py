"""Compressed streams that only Java's client reads.

Bytes after a gzip or lz4 stream, and wrong header checksums in lz4 frames of v0 (KAFKA-3160).
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

_PIECE: Final = 1 << 16
_GZIP: Final = 31
"""zlib's number for deflate inside gzip's header and trailer."""

_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_FLAGS_AT: Final = 4
_LZ4_HEADER: Final = 7
_LZ4_CONTENT_SIZE: Final = 0b1000
_LZ4_DICTIONARY: Final = 0b1
_LZ4_BLOCK_CHECKSUM: Final = 0b10000
_LZ4_CONTENT_CHECKSUM: Final = 0b100
_LZ4_LENGTH: Final = 0x7FFFFFFF
_WORD: Final = 4

_XXH_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_XXH_MASK: Final = 0xFFFFFFFF


def gzip_end(payload: memoryview, limit: int) -> int:
    """The end of the last whole member within `limit` unpacked bytes, or 0."""
    end = 0
    while end < len(payload):
        size, room = _member(payload[end:], limit)
        if size == 0:
            break
        end += size
        limit = room
    return end


def _member(payload: memoryview, limit: int) -> tuple[int, int]:
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
    """Return 0 if there is no whole frame."""
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


def with_header_checksum(frame: memoryview) -> memoryview:
    if len(frame) <= _LZ4_FLAGS_AT:
        return frame
    end = _LZ4_FLAGS_AT + 2
    end += 8 if frame[_LZ4_FLAGS_AT] & _LZ4_CONTENT_SIZE else 0
    end += 4 if frame[_LZ4_FLAGS_AT] & _LZ4_DICTIONARY else 0
    if len(frame) <= end:
        return frame
    mended = bytearray(frame)
    mended[end] = xxh32(frame[_LZ4_FLAGS_AT:end].tobytes()) >> 8 & 0xFF
    return memoryview(mended)


def xxh32(octets: bytes) -> int:
    state = (_XXH_PRIMES[4] + len(octets)) & _XXH_MASK
    words = len(octets) // _WORD * _WORD
    for at in range(0, words, _WORD):
        word = int.from_bytes(octets[at : at + _WORD], "little")
        state = _rotated((state + word * _XXH_PRIMES[2]) & _XXH_MASK, 17) * _XXH_PRIMES[3] & _XXH_MASK
    for octet in octets[words:]:
        state = _rotated((state + octet * _XXH_PRIMES[4]) & _XXH_MASK, 11) * _XXH_PRIMES[0] & _XXH_MASK
    state = (state ^ state >> 15) * _XXH_PRIMES[1] & _XXH_MASK
    state = (state ^ state >> 13) * _XXH_PRIMES[2] & _XXH_MASK
    return state ^ state >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _XXH_MASK
