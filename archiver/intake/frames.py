"""Frames of a log segment, multiples of 8 bytes.

`mark(4) size(4) crc32c(4) | size of the JSON(4) JSON body`, little-endian. Checksum and size are of all after
the checksum, the size without padding. Spaces pad the JSON to align an Arrow body.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from archiver.wire.checksum import checksum

MARK: Final = b"\xa7WAL"
_HEAD: Final = Struct("<4sII")
_JSON_SIZE: Final = Struct("<I")
_ALIGNED: Final = 8
OVERHEAD: Final = 64
"""The most bytes of a frame beside JSON and body."""


@dataclass(frozen=True, slots=True)
class Frame:
    position: int
    end: int
    head: Mapping[str, Any]
    body: memoryview


def frame(head: Mapping[str, Any], body: bytes | memoryview = b"") -> bytes:
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-(_HEAD.size + _JSON_SIZE.size + len(text)) % _ALIGNED)
    payload = b"".join((_JSON_SIZE.pack(len(text)), text, body))
    padding = b"\0" * (-(_HEAD.size + len(payload)) % _ALIGNED)
    return b"".join((_HEAD.pack(MARK, len(payload), checksum(payload)), payload, padding))


def read_frame(data: bytes, position: int) -> Frame | None:
    """None unless a whole frame has the right checksum."""
    if position + _HEAD.size + _JSON_SIZE.size > len(data):
        return None
    mark, size, crc = _HEAD.unpack_from(data, position)
    start = position + _HEAD.size
    if mark != MARK or size < _JSON_SIZE.size or start + size > len(data):
        return None
    payload = data[start : start + size]
    if checksum(payload) != crc:
        return None
    (json_size,) = _JSON_SIZE.unpack_from(payload)
    head = json.loads(payload[_JSON_SIZE.size : _JSON_SIZE.size + json_size])
    body = memoryview(data)[start + _JSON_SIZE.size + json_size : start + size]
    end = start + size
    return Frame(position, end + (-end % _ALIGNED), head, body)


def read_frames(data: bytes, position: int = 0) -> Iterator[Frame]:
    while (entry := read_frame(data, position)) is not None:
        yield entry
        position = entry.end


def frames_after(data: bytes, position: int, beginning: bytes) -> Iterator[Frame]:
    """Yield whole frames whose JSON has this beginning.

    No client may know the beginning, because rows may have bytes that look like frames.
    """
    while (position := data.find(MARK, position + 1)) >= 0:
        if not data.startswith(beginning, position + _HEAD.size + _JSON_SIZE.size):
            continue
        entry = read_frame(data, position)
        if entry is not None:
            yield entry
