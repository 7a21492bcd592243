"""Protobuf's wire format by hand."""

from __future__ import annotations


def varint(value: int, extra: int = 0) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(extra):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content
