"""The checksum in the header of an lz4 frame, which producers of message format v0 got wrong (KAFKA-3160).

They took it of the frame's magic number, too. Consumers of v0 therefore don't look at it; decoders elsewhere do.
"""

from __future__ import annotations

from typing import Final

_FLAGS_AT: Final = 4
_HAS_CONTENT_SIZE: Final = 0b1000
_HAS_DICTIONARY: Final = 0b1
_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK: Final = 0xFFFFFFFF
_WORD: Final = 4


def with_header_checksum(frame: memoryview) -> memoryview:
    """The frame with the checksum that its header ought to have; as it is where it has no whole header."""
    if len(frame) <= _FLAGS_AT:
        return frame
    end = _FLAGS_AT + 2
    end += 8 if frame[_FLAGS_AT] & _HAS_CONTENT_SIZE else 0
    end += 4 if frame[_FLAGS_AT] & _HAS_DICTIONARY else 0
    if len(frame) <= end:
        return frame
    mended = bytearray(frame)
    mended[end] = xxh32(frame[_FLAGS_AT:end].tobytes()) >> 8 & 0xFF
    return memoryview(mended)


def xxh32(octets: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    state = (_PRIMES[4] + len(octets)) & _MASK
    words = len(octets) // _WORD * _WORD
    for at in range(0, words, _WORD):
        word = int.from_bytes(octets[at : at + _WORD], "little")
        state = _rotated((state + word * _PRIMES[2]) & _MASK, 17) * _PRIMES[3] & _MASK
    for octet in octets[words:]:
        state = _rotated((state + octet * _PRIMES[4]) & _MASK, 11) * _PRIMES[0] & _MASK
    state = (state ^ state >> 15) * _PRIMES[1] & _MASK
    state = (state ^ state >> 13) * _PRIMES[2] & _MASK
    return state ^ state >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _MASK
