"""Copies a file with a bound on unsent bytes."""

from __future__ import annotations

from typing import BinaryIO, Protocol, runtime_checkable

CHUNK = 4 << 20
AHEAD = 16 << 20
"""The most unsent bytes. pyarrow's S3 streams accept everything: with a slow store they would hold whole files."""


class Writable(Protocol):
    def write(self, data: bytes, /) -> int: ...


@runtime_checkable
class Flushing(Protocol):
    def flush(self) -> None: ...


def copy(source: BinaryIO, sink: Writable) -> None:
    """At most `AHEAD` bytes are unflushed."""
    ahead = 0
    while chunk := source.read(CHUNK):
        if ahead + len(chunk) > AHEAD and isinstance(sink, Flushing):
            sink.flush()
            ahead = 0
        sink.write(chunk)
        ahead += len(chunk)
