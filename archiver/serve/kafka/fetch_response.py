"""The Fetch response (versions 4 to 18), packed by hand: batches go to the socket without a copy.

Log start from 5 on, sessions from 7, preferred replica from 11, varints and tags from 12, topic ids from 13.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode

_WITH_LOG_START: Final = 5
_WITH_SESSIONS: Final = 7
_WITH_REPLICA: Final = 11
_FLEXIBLE: Final = 12
BY_ID: Final = 13
_MORE: Final = 0x80
_NO_TAGS: Final = b"\0"
_NO_REPLICA: Final = struct.pack(">i", -1)
_THROTTLE: Final = struct.pack(">i", 0)
_PARTITION: Final = struct.Struct(">ihqq")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPartition:
    """The last stable offset is the high watermark: an archive has no open transactions."""

    partition: int
    error: ErrorCode = ErrorCode.none
    high_watermark: int = -1
    log_start: int = -1
    parts: tuple[memoryview, ...] = ()


Topics = Sequence[tuple[str | UUID | None, Sequence[FetchedPartition]]]


def packed(
    version: int, topics: Topics, *, session_id: int = 0, error: ErrorCode = ErrorCode.none, committed: bool = False
) -> list[bytes | memoryview]:
    out: list[bytes | memoryview] = []
    head = bytearray(_THROTTLE)
    if version >= _WITH_SESSIONS:
        head += struct.pack(">hi", error, session_id)
    head += _count(version, len(topics))
    for topic, partitions in topics:
        head += _topic(version, topic)
        head += _count(version, len(partitions))
        for partition in partitions:
            size = sum(map(len, partition.parts))
            head += _partition(version, partition, committed=committed)
            head += _varint(size + 1) if version >= _FLEXIBLE else _INT32.pack(size)
            if size:
                out += (bytes(head), *partition.parts)
                head = bytearray()
            head += _tags(version)
        head += _tags(version)
    head += _tags(version)
    return [*out, bytes(head)]


def throttled(body: list[bytes | memoryview], millis: int) -> list[bytes | memoryview]:
    """It is the first field of every version."""
    return [_INT32.pack(millis) + body[0][_INT32.size :], *body[1:]]


def _partition(version: int, found: FetchedPartition, *, committed: bool) -> bytes:
    packed = _PARTITION.pack(found.partition, found.error, found.high_watermark, found.high_watermark)
    if version >= _WITH_LOG_START:
        packed += _INT64.pack(found.log_start)
    # the list of aborted transactions is null for read_uncommitted, and empty for read_committed
    packed += _count(version, 0 if committed else -1)
    return packed + _NO_REPLICA if version >= _WITH_REPLICA else packed


def _topic(version: int, topic: str | UUID | None) -> bytes:
    if version >= BY_ID:
        assert isinstance(topic, UUID)
        return topic.bytes
    name = str(topic).encode()
    return (_varint(len(name) + 1) if version >= _FLEXIBLE else struct.pack(">h", len(name))) + name


def _count(version: int, count: int) -> bytes:
    return _varint(count + 1) if version >= _FLEXIBLE else _INT32.pack(count)


def _tags(version: int) -> bytes:
    return _NO_TAGS if version >= _FLEXIBLE else b""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= _MORE:
        out.append(value % _MORE | _MORE)
        value //= _MORE
    out.append(value)
    return bytes(out)
