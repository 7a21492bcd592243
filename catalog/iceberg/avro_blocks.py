"""Follow the blocks of an Avro file without decoding.

pyiceberg accepts any end. A cut between blocks shows only in the record count (`manifest_lists`).
"""

from __future__ import annotations

from typing import Final

from catalog.errors import MetadataDamaged

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST: Final = 10
"""The most bytes of a number."""
_MORE: Final = 0x80
"""The bit of a byte that says that the number goes on."""


class _Ended(Exception):
    """`args[0]` is the unreadable position."""


def records_of(content: bytes, path: str) -> int:
    """Raises MetadataDamaged if the last block isn't whole."""
    try:
        return _records(content)
    except _Ended as ended:
        raise MetadataDamaged(
            "an Avro file ends within its header or a block, or has other bytes there: it was cut short or overwritten;"
            " restore it from a backup or the store's versions",
            file=path,
            bytes=len(content),
            place=ended.args[0],
        ) from None


def _records(content: bytes) -> int:
    if content[: len(_MAGIC)] != _MAGIC:
        raise _Ended(0)
    at = _end_of_names(content, len(_MAGIC))
    sync = content[at : at + _SYNC]
    at, records = at + _SYNC, 0
    while at < len(content):
        begin = at
        count, at = _number(content, at)
        size, at = _number(content, at)
        end = at + size
        if count < 0 or size < 0 or content[end : end + _SYNC] != sync:
            raise _Ended(begin)
        at, records = end + _SYNC, records + count
    if at > len(content):
        raise _Ended(len(_MAGIC))
    return records


def _end_of_names(content: bytes, at: int) -> int:
    while True:
        count, at = _number(content, at)
        if count == 0:
            return at
        if count < 0:  # then the group's size follows
            _, at = _number(content, at)
        for _ in range(2 * abs(count)):
            size, at = _number(content, at)
            at += size
            if size < 0 or at > len(content):
                raise _Ended(len(_MAGIC))


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(at, min(at + _LONGEST, len(content))):
        value |= (content[index] & ~_MORE) << 7 * (index - at)
        if not content[index] & _MORE:
            return (value >> 1) ^ -(value & 1), index + 1
    raise _Ended(at)
