"""Truncates a log on disk as an unclean election would.

With one broker: a shorter log and a new leader epoch.
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">qi")


def cut_log(folder: Path, before: int) -> int:
    """Truncate the log of a stopped broker at or before offset `before`, and return its end.

    The broker rebuilds the removed indexes and producers' state.
    """
    segments = sorted(folder.glob("*.log"))
    end = 0
    for segment in segments:
        data = segment.read_bytes()
        position = 0
        while position + 61 <= len(data):
            base, length = _HEADER.unpack_from(data, position)
            (delta,) = struct.unpack_from(">i", data, position + 23)
            if base + delta >= before:
                break
            end = base + delta + 1
            position += _HEADER.size + length
        with segment.open("r+b") as file:
            file.truncate(position)
    for pattern in ("*.index", "*.timeindex", "*.txnindex", "*.snapshot"):
        for derived in folder.glob(pattern):
            derived.unlink()
    return end
