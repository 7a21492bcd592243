"""Check the checksums of single batches, without trusting their headers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from archiver.wire.batch_header import CHECKSUM_START, MESSAGE_CHECKSUM_START
from archiver.wire.checksum import checksum

_FAR: Final = (1 << 63) - 1
_LENGTH_END: Final = 12
_MAGIC_AT: Final = 16
_LAST_DELTA_AT: Final = 23
_SHORTEST: Final = (14, 22, 49)
_CRC_AT: Final = (12, 12, 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundBatch:
    position: int
    base_offset: int
    last_offset: int
    size: int


def sound_batch(data: memoryview, position: int = 0) -> SoundBatch | None:
    """None if the batch is corrupt or truncated."""
    if len(data) - position <= _MAGIC_AT:
        return None
    magic, base = data[position + _MAGIC_AT], int.from_bytes(data[position : position + 8], "big", signed=True)
    length = int.from_bytes(data[position + 8 : position + _LENGTH_END], "big", signed=True)
    size = length + _LENGTH_END
    if base < 0 or magic > 2 or length < _SHORTEST[magic] or size > len(data) - position:  # noqa: PLR2004 - the format
        return None
    batch = data[position : position + size]
    crc = int.from_bytes(batch[_CRC_AT[magic] : _CRC_AT[magic] + 4], "big")
    if magic < 2:  # noqa: PLR2004 - the format
        return _message_set(batch, position) if zlib.crc32(batch[MESSAGE_CHECKSUM_START:]) == crc else None
    delta = int.from_bytes(batch[_LAST_DELTA_AT : _LAST_DELTA_AT + 4], "big", signed=True)
    if delta < 0 or checksum(bytes(batch[CHECKSUM_START:])) != crc:
        return None
    return SoundBatch(position=position, base_offset=base, last_offset=base + delta, size=size)


def _message_set(data: memoryview, position: int) -> SoundBatch | None:
    """Compressed sets name only their last offset.

    Imports are late: `archiver status` needs no numpy.
    """
    import numpy as np

    from archiver.wire import DecodeLimits
    from archiver.wire.find_batches import find_batches
    from archiver.wire.inflate import Inflater

    headers = find_batches(np.frombuffer(data, np.uint8), _FAR, Inflater(limit=DecodeLimits().batch)).headers
    if not len(headers):
        return None
    header = headers[0]
    return SoundBatch(
        position=position,
        base_offset=int(header["base_offset"]),
        last_offset=int(header["last_offset"]),
        size=int(header["size"]),
    )


def is_readable(data: bytes, offset: int) -> bool:
    """Checks up to the first batch that ends at the offset or later."""
    view, position = memoryview(data), 0
    while (batch := sound_batch(view, position)) is not None:
        if batch.last_offset >= offset:
            return True
        position += batch.size
    return False


def without_corrupt_head(data: bytes, offset: int) -> bytes:
    """Drop a corrupt batch before the fetch's offset.

    Leaders find batches by headers: a batch with a too high last offset comes first, without records from
    `offset` on.
    """
    if not data or int.from_bytes(data[:8], "big", signed=True) >= offset or sound_batch(memoryview(data)) is not None:
        return data
    view, position = memoryview(data), 0
    while len(data) - position > _MAGIC_AT:
        batch = sound_batch(view, position)
        if batch is not None and batch.base_offset == offset:
            return data[position:]
        length = int.from_bytes(data[position + 8 : position + _LENGTH_END], "big", signed=True)
        if length <= 0 or (batch is not None and batch.base_offset > offset):
            break
        position += length + _LENGTH_END
    return data
