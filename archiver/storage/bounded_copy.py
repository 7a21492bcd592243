"""Copies a file into a stream and bounds how many bytes the stream holds unsent."""

from __future__ import annotations

from typing import BinaryIO, Protocol, runtime_checkable

CHUNK = 4 << 20
AHEAD = 16 << 20
"""The most bytes that may wait unsent.

pyarrow's S3 streams accept everything, so with a slow store they would hold whole files.
"""


class Writable(Protocol):
    """A stream that takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take these bytes."""


@runtime_checkable
class Flushing(Protocol):
    """A stream that can wait until its bytes are sent."""

    def flush(self) -> None:
        """Wait until everything taken so far is sent."""


def copy(source: BinaryIO, sink: Writable) -> None:
    """Copy all of `source`. Flush the sink before more than `AHEAD` bytes wait in it."""
    ahead = 0
    while chunk := source.read(CHUNK):
        if ahead + len(chunk) > AHEAD and isinstance(sink, Flushing):
            sink.flush()
            ahead = 0
        sink.write(chunk)
        ahead += len(chunk)
