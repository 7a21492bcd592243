"""Counts requests for objects, and their bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

from pyiceberg.io import InputStream


@dataclass(slots=True)
class ReadMeter:
    """Thread-safe. Opening a stream is a request, too."""

    requests: int = 0
    size_bytes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def count(self, size: int) -> None:
        with self._lock:
            self.requests += 1
            self.size_bytes += size


class MeteredStream:
    """`read_at` is thread-safe if the stream's is."""

    def __init__(self, stream: InputStream, meter: ReadMeter) -> None:
        self._stream, self._meter, self._turn = stream, meter, Lock()
        meter.count(0)

    @property
    def closed(self) -> bool:
        return bool(getattr(self._stream, "closed", False))

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._meter.count(len(data))
        return data

    def read_at(self, size: int, offset: int) -> bytes:
        reads: Any = self._stream
        if hasattr(reads, "read_at"):
            data: bytes = reads.read_at(size, offset)
        else:
            with self._turn:
                reads.seek(offset)
                data = reads.read(size)
        self._meter.count(len(data))
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with self._turn:
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
