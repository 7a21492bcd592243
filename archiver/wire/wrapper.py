"""Opens compressed message sets (v0 and v1)."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from archiver.errors import CorruptBatch
from archiver.wire import attributes
from archiver.wire.batch_header import MESSAGE_CHECKSUM_START
from archiver.wire.inflate import InflateError, Inflater

_KEY_AT: Final = (18, 26)
"""The position of the key's length, in v0 and in v1. In v1 a time comes before it."""

_LENGTH: Final = struct.Struct(">i")


def inflate_wrapper(inflater: Inflater, message: npt.NDArray[np.uint8], header: Any) -> memoryview:
    """Valid until the inflater's next use. Raises `CorruptBatch`."""
    magic, codec = int(header["magic"]), int(header["attributes"]) & attributes.CODEC
    where = {"base_offset": int(header["base_offset"]), "position": int(header["position"])}
    if zlib.crc32(message.data[MESSAGE_CHECKSUM_START:]) != header["crc"]:
        raise CorruptBatch("A message does not match its checksum", **where)
    try:
        return inflater.inflate(codec, _value(message.data, magic), magic=magic)
    except InflateError as error:
        raise CorruptBatch(f"The compressed messages of a set are bad: {error}", codec=codec, **where) from error


def _value(message: memoryview, magic: int) -> memoryview:
    at = _after(message, _KEY_AT[magic])
    end = _after(message, at)
    if _LENGTH.unpack_from(message, at)[0] < 0:
        raise InflateError("there are none")
    return message[at + _LENGTH.size : end]


def _after(message: memoryview, at: int) -> int:
    if len(message) - at < _LENGTH.size:
        raise InflateError("a length is cut off")
    (length,) = _LENGTH.unpack_from(message, at)
    end: int = at + _LENGTH.size + max(length, 0)
    if end > len(message):
        raise InflateError("a length does not fit in the message")
    return end
