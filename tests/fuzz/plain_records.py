"""Records that aiokafka reads as Java does: it reads attributes as varints, and never wraps numbers."""

from __future__ import annotations

INT_BITS, LONG_BITS = 32, 62


class _Odd(Exception): ...


def are_plain(section: bytes, count: int, base_timestamp: int) -> bool:
    """Whether attributes have one byte, lengths and deltas 32 bits, and times are usual."""
    try:
        at = 0
        for _ in range(count):
            at = _after_record(section, at, base_timestamp)
    except (_Odd, IndexError):
        return False
    return True


def _after_record(section: bytes, at: int, base_timestamp: int) -> int:
    length, at = _number(section, at, INT_BITS)
    end = at + length
    if section[at] >= 1 << 7:
        raise _Odd
    time_delta, at = _number(section, at + 1, LONG_BITS)
    if abs(base_timestamp + time_delta) >= 1 << LONG_BITS:
        raise _Odd
    _, at = _number(section, at, INT_BITS)
    for _ in range(2):
        at = _after_text(section, at)
    headers, at = _number(section, at, INT_BITS)
    for _ in range(2 * headers):
        at = _after_text(section, at)
    return end


def _after_text(section: bytes, at: int) -> int:
    length, at = _number(section, at, INT_BITS)
    return at + max(length, 0)


def _number(section: bytes, at: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = section[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if value >> bits:
            raise _Odd
        if octet < 1 << 7:
            return value >> 1 ^ -(value & 1), at
