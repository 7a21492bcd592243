"""Finds a partition's chunk by offset. Callers evict."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, Protocol, TypeAlias, TypeVar

PartitionKey: TypeAlias = tuple[str, int]
"""A topic, by its key, and a partition."""
Key: TypeAlias = tuple[PartitionKey, int]
"""The partition of a chunk, and its first offset."""


class Spanning(Protocol):
    """The offsets `start` to `next_offset` (exclusive)."""

    @property
    def start(self) -> int: ...

    @property
    def next_offset(self) -> int: ...


_Chunk = TypeVar("_Chunk", bound=Spanning)


class ChunkIndex(Generic[_Chunk]):
    """Chunks by partition and offset. Not thread-safe."""

    def __init__(self) -> None:
        self._chunks: dict[Key, _Chunk] = {}
        self._starts: dict[PartitionKey, list[int]] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    def get(self, key: Key) -> _Chunk | None:
        return self._chunks.get(key)

    def find(self, partition: PartitionKey, offset: int) -> _Chunk | None:
        starts = self._starts.get(partition, [])
        index = bisect_right(starts, offset) - 1
        if index < 0:
            return None
        chunk = self._chunks[partition, starts[index]]
        return chunk if offset < chunk.next_offset else None

    def next_start(self, partition: PartitionKey, offset: int) -> int | None:
        starts = self._starts.get(partition, [])
        index = bisect_right(starts, offset)
        return starts[index] if index < len(starts) else None

    def put(self, partition: PartitionKey, chunk: _Chunk) -> Key:
        """The chunk's start must be new."""
        key = partition, chunk.start
        assert key not in self._chunks
        self._chunks[key] = chunk
        starts = self._starts.setdefault(partition, [])
        starts.insert(bisect_left(starts, chunk.start), chunk.start)
        return key

    def pop(self, key: Key) -> _Chunk | None:
        chunk = self._chunks.pop(key, None)
        if chunk is not None:
            partition, start = key
            starts = self._starts[partition]
            del starts[bisect_left(starts, start)]
            if not starts:
                del self._starts[partition]
        return chunk

    def of_topic(self, topic: str) -> list[Key]:
        return [
            (partition, start)
            for partition, starts in self._starts.items()
            if partition[0] == topic
            for start in starts
        ]
