"""Chunks on a local disk, for slow readers. Files are unlinked, so they vanish with the process."""

from __future__ import annotations

import logging
import os
import tempfile
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from archiver.errors import StorageError
from archiver.serve.reading.chunk_index import ChunkIndex, Key
from archiver.serve.reading.chunks import Chunk

_FILES: Final = 16
"""At this many files, the oldest one is dropped for another."""
_LEAST_FILE: Final = 1 << 20
_SHARES: Final = 64
_MOST_SHARE: Final = 16 << 20
_NUMBER_BYTES: Final = 8
_OVERHEAD_BYTES: Final = 4096
"""What a chunk counts beside its bytes, for its place in memory: many small ones take more of that than of the disk."""
_REST_SECONDS: Final = 60.0
_LOG = logging.getLogger(__name__)


class _SpillFile:
    def __init__(self, folder: Path) -> None:
        file = tempfile.TemporaryFile(dir=folder, prefix="archiver-", buffering=0)  # noqa: SIM115 - closed by finalize
        weakref.finalize(self, file.close)
        self._number = file.fileno()
        self.size = 0

    def write(self, parts: Iterable[memoryview], at: int) -> None:
        for part in parts:
            left = part.cast("B")
            while left:
                count = os.pwrite(self._number, left, at)
                left, at = left[count:], at + count

    def read(self, at: int, size: int) -> memoryview:
        room = np.empty(size, np.uint8)
        left = room.data
        while left:
            count = os.preadv(self._number, [left], at)
            if count == 0:
                raise OSError("a file of spilled batches is shorter than what was written to it")
            left, at = left[count:], at + count
        return room.data


@dataclass(frozen=True, slots=True, eq=False)
class SpilledChunk:
    """Batches, their ends, then their last offsets."""

    start: int
    next_offset: int
    file: _SpillFile
    at: int
    size: int
    batches: int

    def read(self, offset: int, max_bytes: int) -> Chunk:
        """At least one batch. Raises OSError."""
        numbers = np.frombuffer(self.file.read(self.at + self.size, 2 * _NUMBER_BYTES * self.batches), np.int64)
        ends, last_offsets = numbers[: self.batches], numbers[self.batches :]
        first = min(int(np.searchsorted(last_offsets, offset, side="left")), self.batches - 1)
        before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, before + max_bytes, side="right")), first + 1)
        is_whole = end == self.batches
        return Chunk(
            start=int(last_offsets[first - 1]) + 1 if first else self.start,
            next_offset=self.next_offset if is_whole else int(last_offsets[end - 1]) + 1,
            parts=(self.file.read(self.at + before, int(ends[end - 1]) - before),),
            ends=ends[first:end] - before,
            last_offsets=last_offsets[first:end].copy(),
        )


class SpilledChunks:
    """At most `most_bytes`; the oldest are dropped.

    `write` and returned chunks are thread-safe, the rest is for one event loop.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Raises StorageError if the folder can't be used."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._file_bytes = max(_LEAST_FILE, most_bytes // _FILES)
        self._lock = Lock()
        self._rests_until = float("-inf")
        self._kept: OrderedDict[_SpillFile, dict[Key, None]] = OrderedDict()
        self._index: ChunkIndex[SpilledChunk] = ChunkIndex()
        try:
            self._writing = _SpillFile(folder)  # room for nothing yet, but it says whether the folder can be used
        except OSError as error:
            raise self._failure(error) from error

    @property
    def is_usable(self) -> bool:
        """False for some time after a failure."""
        return time.monotonic() >= self._rests_until

    @property
    def share(self) -> int:
        """Bytes to decode at once, with room for several hundred readers."""
        return max(min(self._most_bytes // _SHARES, _MOST_SHARE), _LEAST_FILE)

    @property
    def bytes(self) -> int:
        """Thread-safe."""
        return sum(chunk.size for chunk in tuple(self._kept))

    def write(self, chunk: Chunk) -> SpilledChunk:
        """`put` makes the chunk visible. Raises StorageError, as on a full disk."""
        numbers = [np.ascontiguousarray(offsets, np.int64).data for offsets in (chunk.ends, chunk.last_offsets)]
        size = chunk.size
        needed = size + sum(array.nbytes for array in numbers) + _OVERHEAD_BYTES
        try:
            with self._lock:
                file = self._writing
                if file.size and file.size + needed > self._file_bytes:
                    file = self._writing = _SpillFile(self._folder)
                at = file.size
                file.size += needed
            file.write((*chunk.parts, *numbers), at)
        except OSError as error:
            failure = self._failure(error)
            self._rests_until = time.monotonic() + _REST_SECONDS
            _LOG.warning("slow readers are served without a disk for a while", exc_info=failure)
            raise failure from error
        return SpilledChunk(chunk.start, chunk.next_offset, file, at, size, len(chunk.ends))

    def put(self, topic: str, partition: int, chunk: SpilledChunk) -> None:
        """Drops the oldest file if there are too many."""
        key = topic, partition
        self._drop((key, chunk.start))
        self._kept.setdefault(chunk.file, {})[self._index.put(key, chunk)] = None
        while len(self._kept) > 1 and self.bytes > self._most_bytes:
            for old in self._kept.pop(next(iter(self._kept))):
                self._index.pop(old)

    def find(self, topic: str, partition: int, offset: int) -> SpilledChunk | None:
        return self._index.find((topic, partition), offset)

    def next_start(self, topic: str, partition: int, offset: int) -> int | None:
        return self._index.next_start((topic, partition), offset)

    def give_up(self, topic: str, partition: int, chunk: SpilledChunk) -> None:
        key = (topic, partition), chunk.start
        if self._index.get(key) is chunk:
            self._drop(key)

    def forget(self, topic: str) -> None:
        for key in self._index.of_topic(topic):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        chunk = self._index.pop(key)
        if chunk is not None:
            del self._kept[chunk.file][key]
            if not self._kept[chunk.file]:
                del self._kept[chunk.file]

    def _failure(self, error: OSError) -> StorageError:
        return StorageError(
            "batches for slow readers can't be put aside: give the folder room, name another with"
            " `serve.disk_cache_folder`, or set `serve.disk_cache` to 0",
            folder=str(self._folder),
            cause=str(error),
        )
