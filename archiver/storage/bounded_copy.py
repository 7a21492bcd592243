"""A file's bytes into a stream that may send them by and by, a bounded part of them on their way at any time."""

from __future__ import annotations

from typing import BinaryIO, Protocol, runtime_checkable

CHUNK = 4 << 20
AHEAD = 16 << 20
"""Bytes on their way at most. pyarrow's S3 streams take all that is written; slow stores made them hold whole files."""


class Writable(Protocol):
    """A stream that bytes go into."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


@runtime_checkable
class Flushing(Protocol):
    """A stream that can wait for what it has taken."""

    def flush(self) -> None:
        """Wait until it is out."""


def copy(source: BinaryIO, sink: Writable) -> None:
    """Copy all of `source`, and wait for what was written before more than `AHEAD` bytes of it are on their way."""
    ahead = 0
    while chunk := source.read(CHUNK):
        if ahead + len(chunk) > AHEAD and isinstance(sink, Flushing):
            sink.flush()
            ahead = 0
        sink.write(chunk)
        ahead += len(chunk)
