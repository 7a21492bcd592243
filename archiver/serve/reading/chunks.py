"""Encoded batches, and a cache bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from archiver.archive.batches import FetchedBatches
from archiver.serve.reading.chunk_index import ChunkIndex, Key
from archiver.wire import gap_batch
from archiver.wire.gap import MOST_OFFSETS

CHUNK_BYTES: Final = 1 << 20
"""The approximate bytes that are decoded at once. A larger batch is a chunk by itself."""
_OVERHEAD_BYTES: Final = 1024
"""What a chunk takes beside its batches, about. It keeps many tiny chunks from taking more than the cache may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Records from `start` to `next_offset` (exclusive), in whole batches.

    The first may begin before `start`. `ends`: cumulative bytes after each batch, over all parts.
    """

    start: int
    next_offset: int
    parts: tuple[memoryview, ...]
    ends: npt.NDArray[np.int64] = field(compare=False)
    last_offsets: npt.NDArray[np.int64] = field(compare=False)

    @classmethod
    def decoded(cls, start: int, fetched: FetchedBatches) -> Chunk | None:
        """None if there is nothing yet.

        A range without records becomes an empty batch, which clients step over.
        """
        following = fetched.cursor.offset
        if fetched.parts:
            ends = np.cumsum(fetched.sizes)
            return cls(
                start=start, next_offset=following, parts=fetched.parts, ends=ends, last_offsets=fetched.last_offsets
            )
        if following <= start:
            return None
        last = min(following, start + MOST_OFFSETS) - 1
        batch = gap_batch(start, last)
        lengths = np.array([len(batch)], np.int64)
        return cls(
            start=start, next_offset=last + 1, parts=(batch,), ends=lengths, last_offsets=np.array([last], np.int64)
        )

    @property
    def size(self) -> int:
        return int(self.ends[-1])

    def take(self, offset: int, max_bytes: int, *, must_give: bool) -> tuple[tuple[memoryview, ...], int]:
        """Return batches from `offset` that fit into `max_bytes`, and the next offset.

        `must_give`: the first one even if it is larger. Nothing and `next_offset` if no batch reaches `offset`; nothing
        and `offset` if none fits.
        """
        first = int(np.searchsorted(self.last_offsets, offset, side="left"))
        if first == len(self.last_offsets):
            return (), self.next_offset
        before = int(self.ends[first - 1]) if first else 0
        end = int(np.searchsorted(self.ends, before + max_bytes, side="right"))
        end = max(end, first + int(must_give))
        if end == first:
            return (), offset
        following = self.next_offset if end == len(self.ends) else int(self.last_offsets[end - 1]) + 1
        return self._between(before, int(self.ends[end - 1])), following

    def _between(self, start: int, end: int) -> tuple[memoryview, ...]:
        parts = []
        position = 0
        for part in self.parts:
            first, last = max(start - position, 0), min(end - position, len(part))
            if first < last:
                parts.append(part[first:last])
            position += len(part)
        return tuple(parts)


class ChunkCache:
    """An LRU cache of `most_bytes`. Not thread-safe."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._index: ChunkIndex[Chunk] = ChunkIndex()
        self._used: OrderedDict[Key, None] = OrderedDict()
        """All keys, the one unused for longest first."""

    @property
    def bytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._index)

    def find(self, topic: str, partition: int, offset: int) -> Chunk | None:
        key = topic, partition
        chunk = self._index.find(key, offset)
        if chunk is not None:
            self._used.move_to_end((key, chunk.start))
        return chunk

    def put(self, topic: str, partition: int, chunk: Chunk) -> None:
        key = topic, partition
        self._drop((key, chunk.start))
        self._used[self._index.put(key, chunk)] = None
        self._bytes += _held(chunk)
        while self._bytes > self._most_bytes and len(self._index) > 1:
            self._drop(next(iter(self._used)))

    def forget(self, topic: str) -> None:
        for key in self._index.of_topic(topic):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        chunk = self._index.pop(key)
        if chunk is not None:
            self._bytes -= _held(chunk)
            del self._used[key]


def _held(chunk: Chunk) -> int:
    batches = sum(part.obj.nbytes if isinstance(part.obj, np.ndarray) else len(part) for part in chunk.parts)
    return int(batches) + chunk.ends.nbytes + chunk.last_offsets.nbytes + _OVERHEAD_BYTES
