"""Decompresses single zstd frames, with a decompressor per thread."""

from __future__ import annotations

import threading
from typing import Final

import zstandard

_WINDOW: Final = 8 << 20
"""The largest window of a frame that is read here: the decompressor keeps memory of that size."""
_HEADER: Final = 5
_FLAGS_AT: Final = 4
_CHECKSUM: Final = 0b100
_CHECKSUM_BYTES: Final = 4
_BLOCK_HEADER: Final = 3
_NOT_STATED: Final = -1
_RUN: Final = 1
"""The type of a block that holds one repeated byte."""


class _Decompressors(threading.local):
    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor(max_window_size=_WINDOW)


_DECOMPRESSORS: Final = _Decompressors()


def inflate_frame(payload: memoryview, scratch: memoryview) -> memoryview | None:
    """None if it isn't one good frame, or may need more room."""
    try:
        if not _is_one_frame(payload):
            return None
        size = _DECOMPRESSORS.zstd.stream_reader(payload).readinto(scratch)
        stated = zstandard.frame_content_size(payload)  # the decompressor skips it if the last block is empty
    except zstandard.ZstdError:
        return None
    return scratch[:size] if size < len(scratch) and stated in (_NOT_STATED, size) else None


def _is_one_frame(payload: memoryview) -> bool:
    if len(payload) < _HEADER or payload[:_FLAGS_AT] != zstandard.FRAME_HEADER:
        return False
    at = zstandard.frame_header_size(payload)
    is_last = False
    while not is_last:
        header = int.from_bytes(payload[at : at + _BLOCK_HEADER], "little")
        is_last = bool(header & 1)
        at += _BLOCK_HEADER + (1 if header >> 1 & 3 == _RUN else header >> 3)
        if at > len(payload):
            return False
    return at + (_CHECKSUM_BYTES if payload[_FLAGS_AT] & _CHECKSUM else 0) == len(payload)
