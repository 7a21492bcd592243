"""The pages of a row group, fetched before any of its rows is decoded, and counted by their headers.

No checksum covers a page's header. pyarrow leaves out a page whose type it doesn't know, and takes from each as many
values as its header says: the rows that follow then have values of other rows, and pyarrow finds out where it runs out
of them, at the end of the row group.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import InputStream

from archiver.storage.parquet.compact_thrift import I32, STRUCT, ThriftError, number, struct
from archiver.storage.parquet.file_end import read_exactly
from archiver.storage.parquet.thrift_reader import read_struct

_RUN_BYTES: Final = 32 << 20
"""Chunks are fetched together up to so many bytes, or alone if they are larger."""
_HOLE_BYTES: Final = 64 << 10
"""What may lie between chunks that are fetched together."""

# What a page's header says, by its ids and kinds in parquet.thrift.
_KIND, _SIZE, _VALUES = (1, I32), (3, I32), (1, I32)
_DATA: Final = {0: (5, STRUCT), 3: (8, STRUCT)}
"""The types of pages with values, and where their own headers are."""


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """Where the pages of a column chunk lie in the file, and how many values they have by the footer."""

    start: int
    end: int
    values: int

    @classmethod
    def of(cls, chunk: pq.ColumnChunkMetaData) -> Self:
        """The pages that pyarrow reads of a chunk."""
        start: int = chunk.data_page_offset
        dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        if dictionary:
            start = min(start, dictionary)
        return cls(start, start + chunk.total_compressed_size, chunk.num_values)

    def counted(self, pages: memoryview) -> int | None:
        """How many values pyarrow finds in these bytes of the chunk. None where they have a header that can't be."""
        found = at = 0
        try:
            while found < self.values and at < len(pages):
                header, at = read_struct(pages, at)
                size, inner = number(header, _SIZE), _DATA.get(number(header, _KIND))
                values = 0 if inner is None else number(struct(header, inner), _VALUES)
                if size < 0 or values < 0:
                    return None
                at += size
                found += values
        except (ThriftError, IndexError):
            return None
        return found


class HeldPages:
    """A file for pyarrow to read: what is held comes from memory, all else from `stream`."""

    closed: Final = False

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream
        self._size = stream.seek(0, os.SEEK_END)
        self._at = 0
        self._runs: list[tuple[int, pa.Buffer]] = []

    @contextmanager
    def holding(self, spans: Iterable[ChunkSpan]) -> Iterator[None]:
        """Fetch these chunks, in few requests, and hold them meanwhile. Raises what `read_exactly` raises."""
        mine = []
        try:
            for start, end in _runs(spans):
                mine.append((start, pa.py_buffer(read_exactly(self._stream, start, end))))
                self._runs.append(mine[-1])
            yield
        finally:
            for each in mine:
                self._runs.remove(each)

    def of(self, span: ChunkSpan) -> memoryview:
        """The bytes of a chunk."""
        self.seek(span.start)
        return memoryview(self.read_buffer(span.end - span.start)).cast("B")

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """The position."""
        return self._at

    def read_buffer(self, size: int) -> pa.Buffer:
        """Read up to so many bytes, without a copy where they are held."""
        for start, run in self._runs:
            if start <= self._at and self._at + size <= start + run.size:
                found = run.slice(self._at - start, size)
                break
        else:
            self._stream.seek(self._at)
            found = self._stream.read_buffer(size) if isinstance(self._stream, pa.NativeFile) else self._read(size)
        self._at += found.size
        return found

    def read(self, size: int) -> pa.Buffer:
        """Read up to so many bytes."""
        return self.read_buffer(size)

    def _read(self, size: int) -> pa.Buffer:
        return pa.py_buffer(self._stream.read(size))

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def close(self) -> None:
        """Do nothing: who opened the stream closes it."""


def _runs(spans: Iterable[ChunkSpan]) -> Iterator[tuple[int, int]]:
    """Where to fetch: chunks that lie near each other, together."""
    start = end = -1
    for each in sorted(spans, key=lambda one: one.start):
        if start >= 0 and each.start - end <= _HOLE_BYTES and each.end - start <= _RUN_BYTES:
            end = max(end, each.end)
            continue
        if start >= 0:
            yield start, end
        start, end = each.start, each.end
    if start >= 0:
        yield start, end
