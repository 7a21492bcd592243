"""Reads that give all the bytes that were asked for, or raise."""

from __future__ import annotations

from typing import Protocol


class Stream(Protocol):
    """Bytes that are read at any position."""

    def seek(self, offset: int, whence: int = ..., /) -> int:
        """Go to a position and return it."""

    def read(self, size: int = ..., /) -> bytes:
        """Read up to so many bytes."""


def read_exactly(stream: Stream, start: int, end: int) -> bytes:
    """Read the bytes from `start` to `end`. Raises what the stream raises, and ConnectionError where some are missing.

    The stream's size says that they are there. So an answer that is cut short says nothing against the file.
    """
    stream.seek(start)
    found = stream.read(end - start)
    check_size(found, start, end)
    return found


def check_size(found: bytes, start: int, end: int) -> None:
    """Raise ConnectionError where these aren't all bytes from `start` to `end`."""
    if len(found) != end - start:
        raise ConnectionError(f"the store gave {len(found)} bytes of the {end - start} from {start} on")
