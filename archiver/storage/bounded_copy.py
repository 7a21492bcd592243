"""Copies a file into a stream and bounds how many unsent bytes the stream holds."""

from __future__ import annotations

from typing import BinaryIO, Protocol, runtime_checkable

CHUNK = 4 << 20
AHEAD = 16 << 20
"""The most unsent bytes. pyarrow's S3 streams accept everything: with a slow store they would hold whole files."""


class Writable(Protocol):
    """A stream that takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take these bytes."""


@runtime_checkable
class Flushing(Protocol):
    """A stream that can wait until its bytes are sent."""

    def flush(self) -> None:
        """Wait until everything taken is sent."""


def copy(source: BinaryIO, sink: Writable) -> None:
    """Copy all of `source`. Flush the sink before more than `AHEAD` bytes wait in it."""
    ahead = 0
    while chunk := source.read(CHUNK):
        if ahead + len(chunk) > AHEAD and isinstance(sink, Flushing):
            sink.flush()
            ahead = 0
        sink.write(chunk)
        ahead += len(chunk)
