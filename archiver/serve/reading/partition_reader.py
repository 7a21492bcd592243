"""Batches from any offset, cached, and decoded once for concurrent readers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias
from weakref import WeakValueDictionary

from archiver.serve.reading.chunks import CHUNK_BYTES, Chunk, ChunkCache
from archiver.serve.reading.served_topic import ServedTopic
from archiver.serve.reading.spilled_chunks import SpilledChunks

_LOG = logging.getLogger(__name__)
_Key: TypeAlias = tuple[ServedTopic, int, int, int, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBatches:
    """`is_missing`: batches from `next_offset` on aren't in memory yet."""

    parts: tuple[memoryview, ...]
    next_offset: int
    is_missing: bool

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


class ChunkReader:
    """For all clients, in one event loop."""

    def __init__(
        self,
        cache: ChunkCache,
        *,
        read_ahead: int,
        most_loads: int,
        spilled: SpilledChunks | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        """`read_ahead` bytes are decoded after a read, unless `most_loads` chunks are being decoded.

        `hits` counts chunks from memory, `spilled_hits` from disk, `misses` decoded ones.
        """
        self.cache = cache
        self.spilled = spilled
        self.hits = 0
        self.spilled_hits = 0
        self.misses = 0
        self._spilling: WeakValueDictionary[tuple[ServedTopic, int], asyncio.Lock] = WeakValueDictionary()
        self._read_ahead = read_ahead
        self._most_loads = most_loads
        self._chunk_bytes = chunk_bytes
        self._slow_loads = 0
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
    ) -> ReadBatches:
        """`must_give`: the first batch is returned even if it is larger.

        `loaded` may be too large for the cache.
        """
        parts: list[memoryview] = []
        left = max_bytes
        while True:
            chunk = loaded if loaded is not None and loaded.start <= offset < loaded.next_offset else None
            chunk = chunk or self.cache.find(topic.key, partition, offset)
            if chunk is None:
                return ReadBatches(parts=tuple(parts), next_offset=offset, is_missing=offset < topic.end(partition))
            taken, following = chunk.take(offset, left, must_give=must_give and not parts)
            parts += taken
            self.hits += chunk is not loaded
            left -= sum(map(len, taken))
            if following < chunk.next_offset:
                return ReadBatches(parts=tuple(parts), next_offset=following, is_missing=False)
            offset = following

    def load(
        self, topic: ServedTopic, partition: int, offset: int, *, slow_takes: int | None = None
    ) -> asyncio.Task[Chunk | None]:
        """Concurrent readers share a chunk.

        `slow_takes`: the bytes that a slow reader takes at a time, from disk if there is space.
        """
        if self.spilled is None:
            slow_takes = None
        key = topic, topic.edition, partition, offset, slow_takes is not None
        task = self._loads.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(topic, partition, offset, slow_takes))
            self._loads[key] = task
            self._slow_loads += slow_takes is not None
            task.add_done_callback(partial(self._loaded, key, slow_takes is not None))
        return task

    def read_ahead(self, topic: ServedTopic, partition: int, offset: int, wanted: int) -> None:
        """Less than a chunk is skipped: it would be evicted unread."""
        if wanted >= self._chunk_bytes:  # else the reader is slow
            self._go_on(topic, partition, offset, min(wanted, self._read_ahead))

    def forget(self, topic: str) -> None:
        """By the topic's key: its chunks may have left the table."""
        self.cache.forget(topic)
        if self.spilled is not None:
            self.spilled.forget(topic)

    async def close(self) -> None:
        tasks = list(self._loads.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _go_on(self, topic: ServedTopic, partition: int, offset: int, left: int) -> None:
        while left > 0 and offset < topic.end(partition):
            chunk = self.cache.find(topic.key, partition, offset)
            if chunk is None:
                if len(self._loads) - self._slow_loads < self._most_loads:
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

    async def _load(self, topic: ServedTopic, partition: int, offset: int, slow_takes: int | None) -> Chunk | None:
        edition = topic.edition
        chunk = await self._unspilled(topic, partition, offset, slow_takes)
        if chunk is None and slow_takes is not None:
            await self._spill(topic, partition, offset)
            chunk = await self._unspilled(topic, partition, offset, slow_takes)
        if chunk is not None and slow_takes is not None:
            return chunk  # keeps no memory for a reader that returns late for other batches
        while chunk is None or edition != topic.edition:  # removed records aren't served
            self.misses += 1
            edition = topic.edition
            chunk = await topic.chunk(partition, offset, self._chunk_bytes)
            if chunk is None:
                return None
        self.cache.put(topic.key, partition, chunk)
        return chunk

    async def _unspilled(self, topic: ServedTopic, partition: int, offset: int, most: int | None) -> Chunk | None:
        spilled_chunk = self.spilled and self.spilled.find(topic.key, partition, offset)
        if not spilled_chunk:
            return None
        edition = topic.edition
        try:
            chunk = await topic.unspilled(spilled_chunk, offset, most)
        except OSError as error:
            _LOG.warning(
                "batches of %s-%d that were put aside are decoded again", topic.name, partition, exc_info=error
            )
            assert self.spilled is not None
            self.spilled.give_up(topic.key, partition, spilled_chunk)
            return None
        if edition != topic.edition:
            return None
        self.spilled_hits += 1
        return chunk

    async def _spill(self, topic: ServedTopic, partition: int, offset: int) -> None:
        spilled = self.spilled
        if spilled is None:
            return
        lock = self._spilling.setdefault((topic, partition), asyncio.Lock())
        async with lock:
            if not spilled.is_usable or spilled.find(topic.key, partition, offset) is not None:
                return
            edition = topic.edition
            self.misses += 1
            until = spilled.next_start(topic.key, partition, offset)
            most, size = spilled.share, min(spilled.share, self._chunk_bytes)
            for chunk in await topic.spill(partition, offset, most, into=spilled, until=until, chunk_bytes=size):
                if edition == topic.edition:
                    spilled.put(topic.key, partition, chunk)

    def _loaded(self, key: _Key, is_slow: bool, done: asyncio.Task[Chunk | None]) -> None:
        del self._loads[key]
        self._slow_loads -= is_slow
        if not done.cancelled():
            done.exception()  # its readers have the error; a read-ahead's error comes again when the chunk is read
