"""Reads one partition's records by offset, for files in any order.

Sorted blocks without overlap are streamed; other records are buffered.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol, TypeAlias

import pyarrow as pa

from archiver.archive.block_order import is_in_order
from archiver.archive.offset_order import misplaced, offsets_of
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import AS_CONSUMED, RecordShape
from archiver.archive.reorder_buffer import HELD_BYTES, ReorderBuffer
from archiver.archive.table_files import TableFile
from archiver.errors import ReplayError
from archiver.storage.segment import Block, RowRange, SegmentReader


class ScannedFile(Protocol):
    @property
    def reader(self) -> SegmentReader: ...

    def records(self, block: Block, wanted: RowRange) -> Iterator[pa.RecordBatch]:
        """Return sorted, nonempty batches with a column `offset`."""

    def close(self) -> None: ...


OpensFile: TypeAlias = Callable[[TopicStorage, RecordShape, TableFile], ScannedFile]
"""Opens a file to batches of records of a shape."""


@dataclass(slots=True)
class _OpenBlocks:
    file: ScannedFile
    left: int

    def done_with_one(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.file.close()


@dataclass(slots=True, order=True)
class _Unread:
    low: int
    number: int
    high: int = field(compare=False)
    source: TableFile | tuple[_OpenBlocks, Block] = field(compare=False)


class PartitionScan:
    """One pass over a range. `files` are ordered by lowest offset.

    Iterate once; closing the iterator closes the files. Batches are nonempty, offsets rise strictly. Raises ReplayError
    for repeated offsets and wrong claims to be sorted.
    """

    def __init__(
        self,
        storage: TopicStorage,
        files: Iterable[TableFile],
        wanted: RowRange,
        *,
        shape: RecordShape = AS_CONSUMED,
        held_bytes: int = HELD_BYTES,
        open_file: Callable[[TableFile], ScannedFile] | None = None,
    ) -> None:
        """`held_bytes` bounds the buffer in memory; the rest goes to disk."""
        # No method of this object: in a cycle, closed files would keep their row groups until the collector comes.
        self._opened = open_file or partial(open_records, storage, shape)
        self._wanted = wanted
        self._numbers = count()
        self._open: list[_OpenBlocks] = []
        self._pending: list[_Unread] = []
        self._files = iter(files)
        self._held = ReorderBuffer(storage.spill, held_bytes=held_bytes)
        self._push_file()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        last = -1
        try:
            for batch in self._ordered():
                last = self._checked(batch, last)
                yield batch
        finally:
            self._held.close()
            for opened in self._open:
                opened.file.close()

    def _ordered(self) -> Iterator[pa.RecordBatch]:
        buffer = self._held
        while self._pending:
            unit = heapq.heappop(self._pending)
            yield from buffer.take_below(unit.low)
            match unit.source:
                case TableFile() as file:
                    self._open_file(file)
                    self._push_file()
                case (blocks, block):
                    batches = blocks.file.records(block, self._wanted)
                    is_alone = not buffer and (not self._pending or self._pending[0].low > unit.high)
                    if is_alone and is_in_order(blocks.file.reader, block):
                        yield from batches
                    else:
                        for batch in batches:
                            buffer.add(batch)
                    blocks.done_with_one()
        yield from buffer.take_below()

    def _push_file(self) -> None:
        """Later files can't hold earlier offsets."""
        file = next(self._files, None)
        if file is not None:
            low, high = (file.offsets.low, file.offsets.high) if file.offsets else (None, None)
            self._push(low, high, file)

    def _open_file(self, file: TableFile) -> None:
        opened = self._opened(file)
        unread = opened.reader.blocks(self._wanted)
        if not unread:
            opened.close()
            return
        counted = _OpenBlocks(opened, len(unread))
        self._open = [blocks for blocks in self._open if blocks.left] + [counted]
        for block in unread:
            self._push(block.low_offset, block.high_offset, (counted, block))

    def _push(self, low: int | None, high: int | None, source: TableFile | tuple[_OpenBlocks, Block]) -> None:
        start, end = self._wanted.start_offset, self._wanted.end_offset
        unit = _Unread(
            low=start if low is None else max(low, start),
            number=next(self._numbers),
            high=end if high is None else min(high, end),
            source=source,
        )
        heapq.heappush(self._pending, unit)

    def _checked(self, batch: pa.RecordBatch, last: int) -> int:
        fault = misplaced(batch, last)
        if fault is not None:
            raise ReplayError(fault[0], partition=self._wanted.partition, offset=fault[1])
        return int(offsets_of(batch)[-1])


def open_records(storage: TopicStorage, shape: RecordShape, file: TableFile) -> ScannedFile:
    return OpenFile.open(storage, file, shape)
