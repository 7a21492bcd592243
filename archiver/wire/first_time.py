"""Reads the time of a batch's first record."""

from __future__ import annotations

import struct
from typing import Final

from archiver.wire import attributes

_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 21
_TIMES: Final = struct.Struct(">qq")
_TIMES_AT: Final = 27


def first_time(data: bytes) -> int | None:
    """In ms; None without a time, or if the format isn't v2."""
    if len(data) < _TIMES_AT + _TIMES.size or data[_MAGIC_AT] != 2:  # noqa: PLR2004 - record batches, not messages
        return None
    (flags,) = struct.unpack_from(">h", data, _ATTRIBUTES_AT)
    first, last = _TIMES.unpack_from(data, _TIMES_AT)
    time_ms = last if flags & attributes.LOG_APPEND_TIME else first
    return None if time_ms < 0 else int(time_ms)
