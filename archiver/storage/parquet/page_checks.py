"""Checks by checksums, without decoding, whether pages are as written.

Page headers have none, so they are compared with the footer. Columns in doubt must be decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow.parquet as pq
from pyiceberg.io import InputStream

from archiver.storage.exact_reads import read_exactly
from archiver.storage.parquet.chunk_runs import runs
from archiver.storage.parquet.compact_thrift import I32, STRUCT, Fields, ThriftError, number, struct
from archiver.storage.parquet.footer_chunks import ColumnChunk, FooterChunks
from archiver.storage.parquet.leaves import ParquetLeaf
from archiver.storage.parquet.thrift_reader import read_struct

RUN_BYTES: Final = 8 << 20
"""Chunks are read together up to this many bytes, or alone if they are larger."""

# What a page's header says, by its ids and kinds in parquet.thrift.
_KIND, _UNPACKED_SIZE, _SIZE, _CHECKSUM = (1, I32), (2, I32), (3, I32), (4, I32)
_DATA, _DICTIONARY = (5, STRUCT), (7, STRUCT)
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_VALUES, _ENCODING, _DEFINITION_LEVELS, _REPETITION_LEVELS = (1, I32), (2, I32), (3, I32), (4, I32)

_UNCOMPRESSED, _ZSTD = 0, 6
_PLAIN, _RLE, _BY_DICTIONARY = 0, 3, 8
_DELTAS: Final = (5, 6, 7)
_ENCODINGS: Final = frozenset((_PLAIN, *_DELTAS))
"""Encodings of data pages without a dictionary."""
_WIDTHS: Final = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class _Doubtful(Exception): ...


def doubtful(
    stream: InputStream, leaves: Iterable[ParquetLeaf], chunks: FooterChunks, group: int, schema: pq.ParquetSchema
) -> Iterator[ParquetLeaf]:
    """Yield the columns that must be decoded. Raises as `read_exactly`."""
    chunks_of_leaves: list[tuple[ParquetLeaf, ColumnChunk]] = []
    for leaf in leaves:
        chunk = _chunk(chunks, group, leaf)
        if chunk is None:
            yield leaf
        else:
            chunks_of_leaves.append((leaf, chunk))
    for run in runs(chunks_of_leaves, lambda pair: _span(pair[1]), most=RUN_BYTES):
        read = memoryview(read_exactly(stream, run.start, run.end))
        for leaf, chunk in run.chunks:
            first, last = _span(chunk)
            if not are_as_written(read[first - run.start : last - run.start], chunk, schema.column(leaf.index)):
                yield leaf


def _chunk(chunks: FooterChunks, group: int, leaf: ParquetLeaf) -> ColumnChunk | None:
    try:
        candidate = chunks.column(group, leaf.index)
    except ThriftError:
        return None
    start, end = _span(candidate)
    return candidate if 0 <= start < end <= chunks.pages_end else None


def are_as_written(pages: memoryview, chunk: ColumnChunk, column: pq.ColumnSchema) -> bool:
    """False means doubt: decode the pages."""
    try:
        return _Chunk(pages, chunk).is_as_written(column)
    except (_Doubtful, ThriftError, IndexError):
        return False


def _span(chunk: ColumnChunk) -> tuple[int, int]:
    return chunk.start, chunk.start + chunk.size


class _Chunk:
    def __init__(self, pages: memoryview, chunk: ColumnChunk) -> None:
        self._pages = pages
        self._chunk = chunk
        self._codec, self._width = chunk.codec, _WIDTHS.get(chunk.physical_type)
        self._unpacked = self._values = 0
        self._encodings: set[int] = set()
        self._has_dictionary = False

    def is_as_written(self, column: pq.ColumnSchema) -> bool:
        at = 0
        while at < len(self._pages):
            at = self._end_of_page(at)
        chunk = self._chunk
        return (
            chunk.is_of(column)
            and self._values == chunk.values
            and self._unpacked == chunk.unpacked_size
            and self._is_encoding_sure()
        )

    def _end_of_page(self, start: int) -> int:
        header, at = read_struct(self._pages, start)
        size, unpacked = number(header, _SIZE), number(header, _UNPACKED_SIZE)
        page = self._pages[at : at + max(0, size)]
        if len(page) != size or zlib.crc32(page) != number(header, _CHECKSUM) & 0xFFFFFFFF:
            raise _Doubtful
        self._check_packing(page, unpacked)
        kind = number(header, _KIND)
        if kind == _DATA_PAGE and _DICTIONARY not in header:
            self._add_data(struct(header, _DATA))
        elif kind == _DICTIONARY_PAGE and _DATA not in header and start == 0:
            self._add_dictionary(struct(header, _DICTIONARY), unpacked)
        else:
            raise _Doubtful
        self._unpacked += at - start + unpacked
        return at + size

    def _check_packing(self, page: memoryview, unpacked: int) -> None:
        is_right = len(page) == unpacked if self._codec == _UNCOMPRESSED else _zstd_size(page) == unpacked
        if self._codec not in (_UNCOMPRESSED, _ZSTD) or not is_right:
            raise _Doubtful

    def _add_data(self, header: Fields) -> None:
        if (number(header, _DEFINITION_LEVELS), number(header, _REPETITION_LEVELS)) != (_RLE, _RLE):
            raise _Doubtful
        self._values += number(header, _VALUES)
        self._encodings.add(number(header, _ENCODING))

    def _add_dictionary(self, header: Fields, unpacked: int) -> None:
        # Texts can only be counted by decoding them, unless there are none.
        values = number(header, _VALUES)
        is_sure = values == unpacked == 0 if self._width is None else values * self._width == unpacked
        if not is_sure:
            raise _Doubtful
        if number(header, _ENCODING) != _PLAIN:
            raise _Doubtful
        self._has_dictionary = True

    def _is_encoding_sure(self) -> bool:
        if len(self._encodings) != 1:
            return False
        (encoding,) = self._encodings
        if self._has_dictionary:
            return encoding == _BY_DICTIONARY
        return encoding in _ENCODINGS & self._chunk.encodings


def _zstd_size(frame: memoryview) -> int:
    if bytes(frame[:4]) != _ZSTD_MAGIC:
        return -1
    described = frame[4]
    is_single, flag = described >> 5 & 1, described >> 6
    if described & 0b1011 or not (flag or is_single):  # reserved, or with a separate dictionary
        return -1
    at, width = 5 + (not is_single), 1 << flag
    return int.from_bytes(frame[at : at + width], "little") + (256 if flag == 1 else 0)
