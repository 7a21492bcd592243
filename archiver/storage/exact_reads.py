"""Reads that return all requested bytes, or raise."""

from __future__ import annotations

from typing import Protocol


class Stream(Protocol):
    def seek(self, offset: int, whence: int = ..., /) -> int: ...

    def read(self, size: int = ..., /) -> bytes: ...


def read_exactly(stream: Stream, start: int, end: int) -> bytes:
    """`end` is exclusive. Raises ConnectionError if bytes are missing."""
    stream.seek(start)
    data = stream.read(end - start)
    check_size(data, start, end)
    return data


def check_size(found: bytes, start: int, end: int) -> None:
    """Raise ConnectionError if bytes are missing."""
    if len(found) != end - start:
        raise ConnectionError(f"the store gave {len(found)} bytes of the {end - start} from {start} on")
