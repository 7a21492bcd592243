"""Ends never go back, and batches stay right when files are rewritten.

Reading methods block: call them in a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import UUID, uuid5

from archiver.archive.batches import ArchivedBatches, BatchCursor, OpenStreams
from archiver.archive.batches.wire_columns import ON_THE_WIRE
from archiver.archive.plan import TopicSnapshot
from archiver.archive.table_files import TableFile
from archiver.archive.topic_archive import TopicArchive
from archiver.archive.watermarks import high_watermark, record_ends
from archiver.errors import RecordsRetired, ReplayError
from archiver.serve.reading.chunks import Chunk
from archiver.serve.reading.served_partition import ServedPartition
from archiver.serve.reading.spilled_chunks import SpilledChunk, SpilledChunks
from archiver.serve.reading.workers import Workers
from archiver.wire.encode import Compression
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_HURRIED_SECONDS: Final = 0.1
"""The least seconds between two refreshes of a table, however many are requested."""
_UNSEEN_SECONDS: Final = 30.0
"""The most seconds between refreshes while clients use the topic, but fetch from other nodes only."""
_ASKED_FOR_BEGINS: Final = 2
"""The first query may precede a new partition, and then lacks its begin."""
_EARLY: Final = 0.75
"""The part of the interval after which a fetch begins another look. Readers of what is in memory rarely wait then."""
_BEGINS_SECONDS: Final = 1.0
"""How long the registry is waited for when a topic is opened."""
NO_END: Final = (1 << 63) - 1
"""The end of a leader epoch that may continue: no position is beyond it."""
_ONE_RECORD: Final = replace(ON_THE_WIRE, is_streamed=False)
_IDS: Final = UUID("6e8bc430-9c3a-11d9-9669-0800200c9a66")
"""The namespace of topic ids for archives that don't know their topic's own."""


class ServedTopic:
    """Use it from one event loop."""

    def __init__(
        self,
        archive: TopicArchive,
        workers: Workers,
        *,
        streams: OpenStreams,
        compression: Compression = "original",
        interval: float = 2.0,
        begins: Callable[[], Mapping[int, int]] = dict,
        on_rewrite: Callable[[str], None] = lambda _: None,
    ) -> None:
        """The table is refreshed at most every `interval` seconds, while it is used.

        `begins` returns log starts; it is repeated after errors. `on_rewrite` gets the `key` when served records may
        have left the table; `edition` increases then.
        """
        self.name = archive.topic
        self.key = f"{archive.topic} in {archive.table_uuid}"
        self.topic_id = archive.topic_id or uuid5(_IDS, str(archive.table_uuid))
        self.trouble: ContextError | None = None
        self.edition = 0
        self._archive = archive
        self._workers = workers
        self._streams = streams
        self._compression = compression
        self._interval = interval
        self._ask_begins = begins
        self._on_rewrite = on_rewrite
        self._batches = ArchivedBatches(archive, streams=streams)
        self._seen = archive.snapshot
        self._served: dict[int, ServedPartition] = {}
        self._record_ends: tuple[TopicSnapshot, dict[int, int]] | None = None
        self._looked_at = self._look_began = self._seen_at = asyncio.get_running_loop().time()
        self._is_looking = False
        self._awaited_since: float | None = None
        self._hurry = asyncio.Event()
        self._knows_begins = False
        self._begins_may_be_old = False
        self._begins_failed = False
        self._refreshing: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._take_in(self._seen)

    @property
    def is_unseen(self) -> bool:
        """Partitions may be new: the table wasn't refreshed for a while."""
        age = asyncio.get_running_loop().time() - self._looked_at
        return age >= max(self._interval, _UNSEEN_SECONDS)

    @property
    def is_crowded(self) -> bool:
        """Many readers wait for files, so reads also decode for later readers."""
        return self._workers.is_crowded

    @property
    def partitions(self) -> int:
        """The number of partitions when the topic was archived, if known."""
        return max(self._served, default=-1) + 1

    def end(self, partition: int) -> int:
        """An empty partition's end is its log start. It never goes back."""
        return self._known(partition).end

    def may_have_records(self, partition: int, offset: int) -> bool:
        """Whether there may be more than transaction markers."""
        if offset >= self.end(partition):
            return False
        if self._record_ends is None or self._record_ends[0] is not self._seen:
            self._record_ends = self._seen, record_ends(self._seen)
        return offset < self._record_ends[1].get(partition, self.end(partition))

    def leader_epoch(self, partition: int) -> int:
        """-1 if unknown."""
        return self._known(partition).leader_epoch

    async def start(self, partition: int) -> int:
        """The archive's begin may precede the first record."""
        served, snapshot_id = self._known(partition), self._archive.snapshot.snapshot_id
        start = served.start(snapshot_id)
        if start is not None:
            return start
        for _ in range(_ASKED_FOR_BEGINS):
            if self._begins_failed or (self._knows_begins and served.is_begin_known):
                break
            await asyncio.shield(self._asked_begins())
            served = self._known(partition)
        begin = served.begin
        if partition not in self._partitions:
            return served.keep_start(begin or 0, snapshot_id)
        low, _ = await self._workers.lookup(self._archive.watermarks, partition)
        # There may be no record at the archive's begin. If retention moved the start, there is none before it.
        low = low if begin is None else max(min(low, begin), self._archive.first_offset(partition))
        return served.keep_start(low, snapshot_id)

    async def begins_learned(self) -> None:
        """Wait at most a second for all partitions, including empty ones."""
        if not self._knows_begins:
            await asyncio.wait({self._asked_begins()}, timeout=_BEGINS_SECONDS)

    def learn_begins(self) -> None:
        if not (self._knows_begins or self._begins_failed):
            self._asked_begins()

    def may_begin_before(self, partition: int, offset: int) -> bool:
        """True only if the registry can't be reached."""
        return self._begins_failed and offset >= self._archive.first_offset(partition)

    async def fresh(self) -> None:
        """Errors keep the last state."""
        if asyncio.get_running_loop().time() - self._looked_at >= self._interval:
            await asyncio.shield(self.next_look())

    @property
    def is_old(self) -> bool:
        return asyncio.get_running_loop().time() - self._seen_at >= _EARLY * self._interval

    async def recent(self) -> None:
        """Bounds how long removed records are served.

        If the catalog doesn't answer within the interval, the last snapshot is served.
        """
        now = asyncio.get_running_loop().time()
        age = now - self._seen_at
        has_failed = self.trouble is not None and now - self._looked_at < self._interval
        if not self.is_old or has_failed:
            return
        if self._awaited_since is None:
            self._awaited_since = now
        if not self._is_looking:
            self._hurry.set()
        look = self.next_look()
        left = self._awaited_since + self._interval - now
        if age >= self._interval and left > 0:
            await asyncio.wait({look}, timeout=left)

    async def caught_up(self) -> bool:
        """True on success: then no client has seen a newer snapshot."""
        asked = asyncio.get_running_loop().time()
        while self._look_began < asked:
            self._hurry.set()
            await asyncio.shield(self.next_look())
        return self.trouble is None

    def note_ahead(self, partition: int, offset: int) -> None:
        served = self._known(partition)
        if served.ahead != offset:
            served.ahead = offset
            _LOG.warning("%s-%d ends at %d, and a client waits for offset %d", self.name, partition, served.end, offset)

    def was_ahead(self, partition: int, offset: int) -> bool:
        return self._known(partition).ahead == offset

    def next_look(self) -> asyncio.Task[None]:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._look())
        return self._refreshing

    async def chunk(self, partition: int, offset: int, max_bytes: int) -> Chunk | None:
        """None at the end. Raises the errors of BatchSource.fetch."""
        cursor = BatchCursor(partition=partition, offset=offset)
        while True:
            batches = self._batches
            try:
                fetched = await self._workers.batches(
                    partial(batches.fetch, cursor, max_bytes, compression=self._compression),
                    opens=not batches.is_open_at(cursor, compression=self._compression),
                )
            except ReplayError:
                if batches is self._batches:
                    raise
            else:
                return Chunk.decoded(offset, fetched)
            finally:
                self._note(self._archive.snapshot)  # the archive replaced a file that was gone

    async def spill(
        self,
        partition: int,
        offset: int,
        max_bytes: int,
        *,
        into: SpilledChunks,
        until: int | None,
        chunk_bytes: int,
    ) -> list[SpilledChunk]:
        """Stops at `until` or the end.

        An error ends it early, and is raised again when that part is read.
        """
        batches = self._batches
        cursor = BatchCursor(partition=partition, offset=offset)

        def spilled() -> list[SpilledChunk]:
            chunks: list[SpilledChunk] = []
            start, left = offset, max_bytes
            try:
                with closing(batches.run(cursor, chunk_bytes, compression=self._compression)) as run:
                    for fetched in run:
                        chunk = Chunk.decoded(start, fetched)
                        if chunk is None:
                            break
                        chunks.append(into.write(chunk))
                        start, left = chunk.next_offset, left - chunk.size
                        if left <= 0 or (until is not None and start >= until):
                            break
            except ContextError as error:
                _LOG.debug("%s-%d was spilled up to %d only", self.name, partition, start, exc_info=error)
            return chunks

        try:
            return await self._workers.batches(spilled, opens=True)
        finally:
            self._note(self._archive.snapshot)

    async def unspilled(self, chunk: SpilledChunk, offset: int, most_bytes: int | None) -> Chunk:
        """Read it whole, or `most_bytes` from an offset. Raises OSError."""
        if most_bytes is None:
            return await self._workers.batches(partial(chunk.read, chunk.start, chunk.size))
        return await self._workers.batches(partial(chunk.read, offset, most_bytes))

    async def since(self, partition: int, timestamp: int) -> tuple[int, int, int] | None:
        """Return the offset, its timestamp (ms) and leader epoch."""
        offset = await self._workers.lookup(self._archive.offset_for_time, partition, timestamp)
        return None if offset is None else await self._workers.lookup(self._described, partition, offset)

    async def latest_time(self, partition: int) -> tuple[int, int, int] | None:
        """Return the first offset with the highest timestamp, its timestamp and leader epoch."""
        latest = await self._workers.lookup(self._archive.latest_time, partition)
        return None if latest is None else await self._workers.lookup(self._described, partition, latest[1])

    async def epoch_end(self, partition: int, epoch: int) -> tuple[int, int]:
        """Return the largest archived epoch up to `epoch`, and its end; (-1, -1) for a negative one.

        An epoch below all archived ones ends at their begin, as in Kafka: its records were retired, not truncated. The
        newest epoch, and epochs that may still be archived, have no end.
        """
        if epoch < 0:
            return -1, -1
        if epoch >= self.leader_epoch(partition):
            return epoch, NO_END
        served = self._known(partition)
        end = served.epoch_ends.get(epoch)
        if end is None:
            end = served.epoch_ends[epoch] = await self._workers.lookup(self._first_above, partition, epoch)
        before = await self._workers.lookup(self._epoch_before, partition, end) if end else -1
        return before if before >= 0 else epoch, end

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
        await self._workers.lookup(self._batches.close)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._looked_at + self._interval):
                await self._hurry.wait()
        await asyncio.sleep(max(0.0, self._looked_at + min(self._interval, _HURRIED_SECONDS) - loop.time()))
        self._hurry.clear()
        self._look_began = loop.time()
        self._is_looking = True
        try:
            snapshot = await self._workers.lookup(self._archive.refresh)
        except ContextError as error:
            if type(error) is not type(self.trouble):
                _LOG.warning("topic %s is served as it was last seen", self.name, exc_info=error)
            self.trouble = error
        else:
            self.trouble = None
            self._seen_at = self._look_began
            self._note(snapshot)
        finally:
            self._looked_at = loop.time()
            self._is_looking, self._awaited_since = False, None
        if self._begins_failed:
            await asyncio.shield(self._asked_begins())
        elif self._begins_may_be_old:
            self._asked_begins()

    def _asked_begins(self) -> asyncio.Task[None]:
        if self._learning is None or self._learning.done():
            self._learning = asyncio.get_running_loop().create_task(self._learn_begins())
        return self._learning

    async def _learn_begins(self) -> None:
        self._begins_may_be_old = False
        partitions = range(self.partitions)  # a partition that comes during that may be missing in the answer
        try:
            begins = await self._workers.offsets(self._ask_begins)
        except ContextError as error:
            if not self._begins_failed:
                _LOG.warning("topic %s is taken to begin at its first records", self.name, exc_info=error)
            self._begins_failed = True
            return
        for partition, begin in {**dict.fromkeys(partitions), **begins}.items():
            self._served.setdefault(partition, ServedPartition()).learn_begin(begin)
        self._knows_begins, self._begins_failed = True, False

    def _note(self, snapshot: TopicSnapshot) -> None:
        if snapshot is self._seen:
            return
        ends = {partition: served.end for partition, served in self._served.items()}
        fills_gaps = any(begins_below(file, ends) for file in snapshot.files.added_since(self._seen.files))
        self._take_in(snapshot)
        is_rewritten = fills_gaps or not snapshot.files.only_adds_to(self._seen.files)
        if snapshot.snapshot_id != self._seen.snapshot_id:
            self._begins_may_be_old = True  # with a commit the topic may have got partitions that have no records yet
            self._asked_begins()
        self._seen = snapshot
        if is_rewritten:
            replaced, self._batches = self._batches, ArchivedBatches(self._archive, streams=self._streams)
            self.edition += 1
            self._closing = asyncio.get_running_loop().create_task(self._workers.lookup(replaced.close))
            self._on_rewrite(self.key)

    def _take_in(self, snapshot: TopicSnapshot) -> None:
        self._partitions = frozenset(snapshot.partitions)
        for partition in self._partitions:
            served = self._served.setdefault(partition, ServedPartition())
            served.grow(high_watermark(snapshot, partition), snapshot.leader_epochs.get(partition, -1))

    def _known(self, partition: int) -> ServedPartition:
        return self._served.get(partition) or ServedPartition()

    def _described(self, partition: int, offset: int) -> tuple[int, int, int] | None:
        for records in self._archive.records(partition, offset, offset + 1):
            return offset, records.column("timestamp")[0].as_py(), records.column("leader_epoch")[0].as_py()
        return None

    def _first_above(self, partition: int, epoch: int) -> int:
        low, high = 0, self.end(partition)
        above = high
        while low < high:
            middle = (low + high) // 2
            batch = self._epoch_at(partition, middle, high)
            if batch is not None and batch[1] <= epoch:
                low = batch[0] + 1
            else:
                above = above if batch is None else batch[0]
                high = middle
        return above

    def _epoch_before(self, partition: int, offset: int) -> int:
        best, low = -1, 0
        high = offset
        while low < high:
            middle = (low + high) // 2
            batch = self._epoch_at(partition, middle, offset)
            if batch is None:
                high = middle
            else:
                best, low = batch[1], batch[0] + 1
        return best

    def _epoch_at(self, partition: int, start: int, end: int) -> tuple[int, int] | None:
        while True:
            start = max(start, self._archive.first_offset(partition))
            try:
                for records in self._archive.records(partition, start, end, shape=_ONE_RECORD):
                    return records.column("offset")[0].as_py(), records.column("leader_epoch")[0].as_py()
            except RecordsRetired as error:  # since the first offset was looked up
                if error.first_offset <= start:
                    raise
                start = error.first_offset
            else:
                return None


def begins_below(file: TableFile, ends: Mapping[int, int]) -> bool:
    """Whether a file may have rows below these ends, as after a refill: chunks had a gap there."""
    if file.offsets is None or file.partitions is None:
        return True
    numbers = range(file.partitions.low, file.partitions.high + 1)
    return any(file.offsets.low < ends.get(partition, 0) for partition in numbers)
