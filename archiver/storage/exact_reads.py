"""Reads that return all requested bytes, or raise."""

from __future__ import annotations

from typing import Protocol


class Stream(Protocol):
    """Bytes that are read at any position."""

    def seek(self, offset: int, whence: int = ..., /) -> int:
        """Go to a position and return it."""

    def read(self, size: int = ..., /) -> bytes:
        """Read at most `size` bytes."""


def read_exactly(stream: Stream, start: int, end: int) -> bytes:
    """Read the bytes from `start` to `end`. Raises what the stream raises, and ConnectionError if bytes are missing."""
    stream.seek(start)
    data = stream.read(end - start)
    check_size(data, start, end)
    return data


def check_size(found: bytes, start: int, end: int) -> None:
    """Raise ConnectionError unless these are all bytes from `start` to `end`."""
    if len(found) != end - start:
        raise ConnectionError(f"the store gave {len(found)} bytes of the {end - start} from {start} on")
