"""Damages a batch on a broker's disk."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">qi")
_FAR = 1 << 20


def flip_batch(folder: Path, offset: int) -> int:
    """Flip the last bit, and raise the last offset. Return the base offset."""
    for segment in sorted(folder.glob("*.log")):
        data, position = segment.read_bytes(), 0
        while position + 61 <= len(data):
            base, length = _HEADER.unpack_from(data, position)
            (delta,) = struct.unpack_from(">i", data, position + 23)
            if base <= offset <= base + delta:
                with segment.open("r+b") as file:
                    file.seek(position + 23)
                    file.write(struct.pack(">i", _FAR))
                    file.seek(position + length + 11)
                    file.write(bytes([data[position + length + 11] ^ 1]))
                return int(base)
            position += _HEADER.size + length
    raise LookupError(offset)
