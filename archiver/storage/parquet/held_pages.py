"""A row group's pages, fetched and counted first.

No checksum covers page headers, and pyarrow skips pages of unknown type, shifting later values.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import InputStream

from archiver.storage.exact_reads import check_size, read_exactly
from archiver.storage.parquet.chunk_runs import Run, few_runs, runs
from archiver.storage.parquet.compact_thrift import I32, STRUCT, ThriftError, number, struct
from archiver.storage.parquet.thrift_reader import read_struct

_RUN_BYTES: Final = 32 << 20
"""Chunks are fetched together up to this many bytes, or alone if they are larger."""
_AT_ONCE: Final = 8
"""Simultaneous requests for chunks: the chunks lie far apart if columns are left out."""

_Held: TypeAlias = tuple[int, pa.Buffer]
"""The position of bytes in the file, and the bytes."""

# What a page's header says, by its ids and kinds in parquet.thrift.
_KIND, _SIZE, _VALUES = (1, I32), (3, I32), (1, I32)
_DATA: Final = {0: (5, STRUCT), 3: (8, STRUCT)}
"""The types of pages with values, and the field of their specific header."""


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    start: int
    end: int
    values: int

    @classmethod
    def of_chunk(cls, chunk: pq.ColumnChunkMetaData) -> Self:
        start: int = chunk.data_page_offset
        dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        if dictionary:
            start = min(start, dictionary)
        return cls(start, start + chunk.total_compressed_size, chunk.num_values)

    def counted(self, pages: memoryview) -> int | None:
        """None if a header is invalid."""
        count = at = 0
        try:
            while count < self.values and at < len(pages):
                header, at = read_struct(pages, at)
                size, inner = number(header, _SIZE), _DATA.get(number(header, _KIND))
                values = 0 if inner is None else number(struct(header, inner), _VALUES)
                if size < 0 or values < 0:
                    return None
                at += size
                count += values
        except (ThriftError, IndexError):
            return None
        return count


class HeldPages:
    """A file for pyarrow: fetched pages from memory, the rest from `stream`.

    Positions are per thread: pyarrow seeks and reads in two calls.
    """

    closed: Final = False

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream
        self._size = stream.seek(0, os.SEEK_END)
        self._place = threading.local()
        self._reading = threading.Lock()
        self._held: tuple[_Held, ...] = ()

    @contextmanager
    def holding(self, spans: Iterable[ChunkSpan], *, are_single: bool = False) -> Iterator[None]:
        """Fetch in few requests. Raises as `read_exactly`.

        `are_single`: single pages, small beside the bytes between them.
        """
        grouped = few_runs if are_single else runs
        mine = self._fetched(list(grouped(spans, _span, most=_RUN_BYTES)))
        self._held += mine
        try:
            yield
        finally:
            self._held = tuple(chunk for chunk in self._held if not any(chunk is fetched for fetched in mine))

    def chunk(self, span: ChunkSpan) -> memoryview:
        self.seek(span.start)
        return memoryview(self.read_buffer(span.end - span.start)).cast("B")

    def read_range(self, start: int, end: int) -> bytes:
        """Thread-safe. Raises as `read_exactly`."""
        if hasattr(self._stream, "read_at"):
            data: bytes = self._stream.read_at(end - start, start)
            check_size(data, start, end)
            return data
        with self._reading:
            return read_exactly(self._stream, start, end)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        self._place.at = base + offset
        return base + offset

    def tell(self) -> int:
        return int(getattr(self._place, "at", 0))

    def read_buffer(self, size: int) -> pa.Buffer:
        """Avoid a copy if in memory. Raises ConnectionError if bytes are missing."""
        at = self.tell()
        for start, buffer in self._held:
            if start <= at and at + size <= start + buffer.size:
                piece = buffer.slice(at - start, size)
                break
        else:
            with self._reading:
                self._stream.seek(at)
                piece = self._stream.read_buffer(size) if isinstance(self._stream, pa.NativeFile) else self._read(size)
            check_size(piece, at, max(at, min(at + size, self._size)))
        self._place.at = at + piece.size
        return piece

    def read(self, size: int) -> pa.Buffer:
        return self.read_buffer(size)

    def _fetched(self, places: list[Run[ChunkSpan]]) -> tuple[_Held, ...]:
        if hasattr(self._stream, "read_at") and len(places) > 1:
            with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as threads:
                return tuple(threads.map(self._fetched_by_place, places))
        with self._reading:
            return tuple((run.start, pa.py_buffer(read_exactly(self._stream, run.start, run.end))) for run in places)

    def _fetched_by_place(self, run: Run[ChunkSpan]) -> _Held:
        data = self._stream.read_at(run.end - run.start, run.start)  # type: ignore[attr-defined]
        check_size(data, run.start, run.end)
        return run.start, pa.py_buffer(data)

    def _read(self, size: int) -> pa.Buffer:
        return pa.py_buffer(self._stream.read(size))

    def readable(self) -> bool:
        return True

    def close(self) -> None: ...


def _span(chunk: ChunkSpan) -> tuple[int, int]:
    return chunk.start, chunk.end
