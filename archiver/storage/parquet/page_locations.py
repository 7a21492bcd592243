"""Positions of a column chunk's pages, by its offset index (PageIndex.md).

No checksum covers an index: a page's header must state the same size and rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archiver.storage.parquet.compact_thrift import I32, I64, LIST, STRUCT, Fields, ThriftError, listed, number, struct
from archiver.storage.parquet.footer_chunks import FooterChunks
from archiver.storage.parquet.leaves import ParquetLeaf
from archiver.storage.parquet.thrift_reader import read_struct

# By their ids and kinds in parquet.thrift: of ColumnChunk and its metadata,
_METADATA, _INDEX, _INDEX_SIZE = (3, STRUCT), (4, I64), (5, I32)
_DATA_PAGE, _DICTIONARY_PAGE, _SIZE = (9, I64), (11, I64), (7, I64)
# of OffsetIndex and PageLocation,
_LOCATIONS, _PAGE_START, _PAGE_SIZE, _FIRST_ROW = (1, LIST), (1, I64), (2, I32), (3, I64)
# of PageHeader.
_KIND, _UNPACKED, _BODY, _DATA, _DICTIONARY, _VALUES = (1, I32), (2, I32), (3, I32), (5, STRUCT), (7, STRUCT), (1, I32)
_IS_DATA, _IS_DICTIONARY = 0, 2


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """`metadata` is the ColumnMetaData."""

    leaf: ParquetLeaf
    rows: int
    metadata: Fields
    index_start: int
    index_size: int

    @classmethod
    def of(cls, chunks: FooterChunks, group: int, leaf: ParquetLeaf) -> IndexedChunk:
        """Raises ThriftError if the chunk has no offset index."""
        rows, fields = chunks.fields(group, leaf.index)
        return cls(leaf, rows, struct(fields, _METADATA), number(fields, _INDEX), number(fields, _INDEX_SIZE))

    @property
    def dictionary(self) -> tuple[int, int] | None:
        start = self.metadata.get(_DICTIONARY_PAGE)
        return (start, number(self.metadata, _DATA_PAGE)) if start else None


@dataclass(frozen=True, slots=True)
class PageLocations:
    """First rows in the row group, starts in the file, and sizes with headers."""

    chunk: IndexedChunk
    first_rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @classmethod
    def parse(cls, chunk: IndexedChunk, index: bytes) -> PageLocations:
        """Raises ThriftError if the index contradicts the chunk."""
        fields, _ = read_struct(memoryview(index))
        locations = listed(fields, _LOCATIONS, STRUCT)
        locations_found = [
            (number(it, _FIRST_ROW), number(it, _PAGE_START), number(it, _PAGE_SIZE)) for it in locations
        ]
        if not locations_found:
            raise ThriftError
        first_rows, starts, sizes = np.array(locations_found, np.int64).T
        begin = number(chunk.metadata, _DATA_PAGE)
        end = (chunk.dictionary or (begin, begin))[0] + number(chunk.metadata, _SIZE)
        follow = np.append(starts[1:], end)
        are_adjacent = starts[0] == begin and bool((starts + sizes == follow).all())
        if first_rows[0] != 0 or not are_adjacent or not (np.diff(np.append(first_rows, chunk.rows)) > 0).all():
            raise ThriftError
        return cls(chunk, first_rows, starts, sizes)

    def rows(self, page: int) -> int:
        end = self.first_rows[page + 1] if page + 1 < len(self.first_rows) else self.chunk.rows
        return int(end - self.first_rows[page])

    def values(self, page: int, content: memoryview) -> tuple[int, int]:
        """Entries and unpacked size. Raises ThriftError if the header contradicts the index."""
        header, body = read_struct(content)
        values = number(struct(header, _DATA), _VALUES)
        if number(header, _KIND) != _IS_DATA or number(header, _BODY) != len(content) - body:
            raise ThriftError
        if values != self.rows(page) and not (self.chunk.leaf.is_repeated and values > self.rows(page)):
            raise ThriftError
        return values, body + number(header, _UNPACKED)


def dictionary_size(content: memoryview) -> int:
    """Unpacked. Raises ThriftError if it is no dictionary."""
    header, body = read_struct(content)
    if number(header, _KIND) != _IS_DICTIONARY or number(header, _BODY) != len(content) - body:
        raise ThriftError
    struct(header, _DICTIONARY)
    return body + number(header, _UNPACKED)
