"""A batch for offsets without records."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from archiver.wire import attributes
from archiver.wire.batch_header import HEADER_BYTES
from archiver.wire.record_encode import seal

MOST_OFFSETS: Final = 1 << 31
"""The largest number of offsets that one batch can cover."""

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH_END: Final = 12
_COMMIT: Final = bytes((0, 0, 0, 8)) + struct.pack(">hh", 0, 1) + bytes((12,)) + struct.pack(">hi", 0, 0) + bytes(1)
"""The record of a commit marker: attributes, time, offset, key, value, number of headers."""
_RECORD: Final = bytes((2 * len(_COMMIT),)) + _COMMIT


def gap_batch(first: int, last: int) -> memoryview:
    """Cover `first` to `last`, inclusive.

    It looks like a commit marker: librdkafka misreads empty batches. Raises ValueError for more than `MOST_OFFSETS`.
    """
    if not 0 <= first <= last < first + MOST_OFFSETS:
        raise ValueError(f"no batch reaches from offset {first} to {last}")
    size = HEADER_BYTES + len(_RECORD)
    head = _HEADER.pack(first, size - _LENGTH_END, -1, 2, 0, attributes.CONTROL, last - first, -1, -1, -1, -1, -1, 1)
    data = np.frombuffer(bytearray(head + _RECORD), np.uint8)
    seal(data, np.array([0, size], np.int64))
    return data.data
