"""Batches from any offset of any topic: out of the cache, else decoded once for all who ask at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from archiver.serve.reading.chunks import Chunk, ChunkCache
from archiver.serve.reading.served_topic import ServedTopic

CHUNK_BYTES: Final = 1 << 20
"""How much is decoded at once, about. A batch above it is a chunk of its own."""

_Key: TypeAlias = tuple[ServedTopic, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Whole batches from an offset on, and where to go on. `is_missing` says that what follows isn't in memory yet."""

    parts: tuple[memoryview, ...]
    next_offset: int
    is_missing: bool

    @property
    def size(self) -> int:
        """The bytes of the batches."""
        return sum(map(len, self.parts))


class PartitionReader:
    """Reads partitions for all clients of a server, in one event loop."""

    def __init__(self, cache: ChunkCache, *, read_ahead: int, most_loads: int) -> None:
        """After each read, so many bytes are decoded ahead, unless `most_loads` chunks are being decoded already.

        `hits` counts chunks that were given out of memory, `misses` those that were decoded.
        """
        self.cache = cache
        self.hits = 0
        self.misses = 0
        self._read_ahead = read_ahead
        self._most_loads = most_loads
        self._loads: dict[_Key, asyncio.Task[Chunk | None]] = {}

    def take(
        self,
        topic: ServedTopic,
        partition: int,
        offset: int,
        max_bytes: int,
        *,
        must_give: bool,
        loaded: Chunk | None = None,
    ) -> Piece:
        """Give the batches in memory from `offset` on that fit into `max_bytes`.

        With `must_give` the first batch is given even if it is larger. `loaded` is a chunk that may be too large for
        the cache to have kept it.
        """
        parts: list[memoryview] = []
        left = max_bytes
        while True:
            chunk = loaded if loaded is not None and loaded.start <= offset < loaded.next_offset else None
            chunk = chunk or self.cache.find(topic.key, partition, offset)
            if chunk is None:
                return Piece(parts=tuple(parts), next_offset=offset, is_missing=offset < topic.end(partition))
            found, following = chunk.take(offset, left, must_give=must_give and not parts)
            parts += found
            self.hits += chunk is not loaded
            left -= sum(map(len, found))
            if following < chunk.next_offset:
                return Piece(parts=tuple(parts), next_offset=following, is_missing=False)
            offset = following

    def load(self, topic: ServedTopic, partition: int, offset: int) -> asyncio.Task[Chunk | None]:
        """Decode a chunk from an offset on, and keep it. All who ask for the same share the work."""
        key = topic, topic.edition, partition, offset
        task = self._loads.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(topic, partition, offset))
            self._loads[key] = task
            task.add_done_callback(lambda done: self._loaded(key, done))
        return task

    def read_ahead(self, topic: ServedTopic, partition: int, offset: int) -> None:
        """Decode what a reader that goes on at an offset will ask for next."""
        self._go_on(topic, partition, offset, self._read_ahead)

    async def close(self) -> None:
        """Give up all loads."""
        tasks = list(self._loads.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _go_on(self, topic: ServedTopic, partition: int, offset: int, left: int) -> None:
        while left > 0 and offset < topic.end(partition):
            chunk = self.cache.find(topic.key, partition, offset)
            if chunk is None:
                if len(self._loads) < self._most_loads:
                    task = self.load(topic, partition, offset)
                    task.add_done_callback(partial(self._after, topic, partition, left))
                return
            left -= chunk.size
            offset = chunk.next_offset

    def _after(self, topic: ServedTopic, partition: int, left: int, done: asyncio.Task[Chunk | None]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        chunk = done.result()
        if chunk is not None:
            self._go_on(topic, partition, chunk.next_offset, left - chunk.size)

    async def _load(self, topic: ServedTopic, partition: int, offset: int) -> Chunk | None:
        edition = topic.edition
        self.misses += 1
        chunk = await topic.chunk(partition, offset, CHUNK_BYTES)
        if chunk is not None and edition == topic.edition:
            self.cache.put(topic.key, partition, chunk)
        return chunk

    def _loaded(self, key: _Key, done: asyncio.Task[Chunk | None]) -> None:
        del self._loads[key]
        if not done.cancelled():
            done.exception()  # whoever waited has it; a read-ahead's error comes again when it is asked for
