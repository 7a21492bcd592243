"""Encodes the batches of one partition in order, in portions of bytes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive.batches.borders import BatchSizes, whole_batches
from archiver.archive.batches.wire_columns import ON_THE_WIRE
from archiver.archive.topic_archive import TopicArchive
from archiver.wire import BatchEncoder, EncodedBatches
from archiver.wire.columns import Int64Array
from archiver.wire.deflate import Zstd
from archiver.wire.encode import Compression
from archiver.wire.gap import MOST_OFFSETS, gap_batch
from schema_mapping.errors import ContextError

LEAST_BATCH: Final = 68
"""The least bytes of a batch with a record, before compression."""


@dataclass(slots=True)
class TakenBatches:
    """Encoded batches, an array for each part, and the error after them."""

    parts: list[memoryview] = field(default_factory=list)
    sizes: list[Int64Array] = field(default_factory=list)
    last_offsets: list[Int64Array] = field(default_factory=list)
    error: ContextError | None = None

    def add(self, part: memoryview, sizes: Int64Array, last_offsets: Int64Array) -> None:
        self.parts.append(part)
        self.sizes.append(sizes)
        self.last_offsets.append(last_offsets)


class BatchStream:
    """A partition's batches up to the high watermark at construction. Not thread-safe.

    The next batch begins at `offset` or earlier.
    """

    def __init__(
        self,
        archive: TopicArchive,
        partition: int,
        offset: int,
        *,
        compression: Compression,
        sizes: BatchSizes,
        spans_gaps: bool,
    ) -> None:
        self.offset = offset
        self.end = archive.end(partition)
        self._compression = compression
        self._spans_gaps = spans_gaps
        self._batches = _batches(archive, partition, offset, self.end, sizes, spans_gaps=spans_gaps)
        self._encoder: BatchEncoder | None = None
        self._zstd = Zstd()
        self._encoded = 0
        self._ready: EncodedBatches | None = None
        self._given = 0
        self._is_exhausted = False

    @property
    def is_at_end(self) -> bool:
        return self.offset >= self.end

    def take(self, max_bytes: int, *, must_give: bool, is_cancelled: Callable[[], bool]) -> TakenBatches:
        taken = TakenBatches()
        left = max_bytes
        try:
            while left >= LEAST_BATCH or (must_give and not taken.parts):
                ready = self._next_ready(left, is_cancelled)
                if ready is None:
                    break
                count = self._fitting(ready, left) or int(must_give and not taken.parts)
                if count == 0:
                    break
                self._give(taken, ready, count)
                left -= len(taken.parts[-1])
        except ContextError as error:
            taken.error = error
            return taken
        if self._is_exhausted and not taken.parts and not self.is_at_end:
            self._step_over(taken, max_bytes, must_give=must_give)
        return taken

    def close(self) -> None:
        self._batches.close()

    def _next_ready(self, left: int, is_cancelled: Callable[[], bool]) -> EncodedBatches | None:
        if self._ready is not None and self._given < len(self._ready):
            return self._ready
        self._ready, self._given = None, 0
        while self._encoder is None or self._encoded == len(self._encoder):
            self._encoder, self._encoded = None, 0
            if is_cancelled():
                return None
            whole = next(self._batches, None)
            if whole is None:
                self._is_exhausted = True
                return None
            self._encoder = BatchEncoder(whole, compression=self._compression, zstd=self._zstd)
        first = self._encoded
        fitting = int(np.searchsorted(np.cumsum(self._encoder.sizes[first:]), left, side="right"))
        end = first + max(1, fitting)
        self._ready = self._encoder.write(first, end)
        self._encoded = end
        return self._ready

    def _fitting(self, ready: EncodedBatches, left: int) -> int:
        ends = ready.position[self._given + 1 :] - ready.position[self._given]
        return int(np.searchsorted(ends, left, side="right"))

    def _give(self, taken: TakenBatches, ready: EncodedBatches, count: int) -> None:
        start, end = self._given, self._given + count
        self._given = end
        self.offset = int(ready.last_offset[end - 1]) + 1
        places = ready.position[start : end + 1]
        taken.add(ready.data[int(places[0]) : int(places[-1])], np.diff(places), ready.last_offset[start:end])

    def _step_over(self, taken: TakenBatches, max_bytes: int, *, must_give: bool) -> None:
        if not self._spans_gaps:
            self.offset = self.end
            return
        last = min(self.end, self.offset + MOST_OFFSETS) - 1
        batch = gap_batch(self.offset, last)
        if len(batch) > max_bytes and not must_give:
            return
        self.offset = last + 1
        taken.add(batch, np.array([len(batch)], np.int64), np.array([last], np.int64))


def _batches(
    archive: TopicArchive, partition: int, offset: int, end: int, sizes: BatchSizes, *, spans_gaps: bool
) -> Generator[pa.RecordBatch, None, None]:
    with closing(archive.records(partition, offset, end, shape=ON_THE_WIRE)) as records:
        yield from whole_batches(records, end=end, sizes=sizes, spans_gaps=spans_gaps)
