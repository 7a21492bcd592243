"""Reads single rows of a row group: only their pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.footer_chunks import FooterChunks
from archiver.storage.parquet.held_pages import ChunkSpan, HeldPages
from archiver.storage.parquet.leaves import ParquetLeaf
from archiver.storage.parquet.page_file import ChosenPages, decoded, merged
from archiver.storage.parquet.page_locations import IndexedChunk, PageLocations, dictionary_size

Rows: TypeAlias = npt.NDArray[np.int64]
ReadsTail: TypeAlias = Callable[[int, int], bytes]
"""Reads a range of bytes near the file's end."""


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Columns decoded together. `rows` are their pages' in the row group."""

    pages: Sequence[tuple[PageLocations, Sequence[int]]]
    rows: Rows


@dataclass(frozen=True, slots=True)
class PointReader:
    """The file must have a checksum of its footer."""

    schema: pa.Schema
    leaves: Sequence[ParquetLeaf]
    chunks: FooterChunks

    def take(
        self, group: int, rows: Rows, wanted: Iterable[ParquetLeaf], pages: HeldPages, tail: ReadsTail
    ) -> pa.RecordBatch:
        """`rows` must rise. Columns with lists come whole.

        Raises ThriftError if the file has no usable index, subclasses of ArrowException, and the store's errors.
        """
        bundles = self._bundles(self._located(group, list(wanted), tail), rows)
        spans = [span for bundle in bundles for pair in bundle.pages for span in _spans(*pair)]
        with pages.holding(spans, are_single=True):
            parts = [_columns(self._decoded(bundle, pages), bundle.rows, rows) for bundle in bundles]
        return merged(self.schema, parts)

    def _located(self, group: int, wanted: list[ParquetLeaf], tail: ReadsTail) -> list[PageLocations]:
        roots = {_list_above(self.schema, leaf) for leaf in wanted if leaf.is_repeated}
        indexes = {leaf.index for leaf in wanted}
        leaves = [
            leaf
            for leaf in self.leaves
            if leaf.index in indexes or (leaf.is_repeated and _list_above(self.schema, leaf) in roots)
        ]
        chunks = [IndexedChunk.of(self.chunks, group, leaf) for leaf in leaves]
        if not chunks:
            raise ThriftError
        start = min(chunk.index_start for chunk in chunks)
        end = max(chunk.index_start + chunk.index_size for chunk in chunks)
        if not 0 <= start < end <= self.chunks.pages_end:
            raise ThriftError
        content = tail(start, end)
        return [
            PageLocations.parse(
                chunk, content[chunk.index_start - start : chunk.index_start - start + chunk.index_size]
            )
            for chunk in chunks
        ]

    def _bundles(self, located: Iterable[PageLocations], rows: Rows) -> list[_Bundle]:
        """Columns whose pages begin at the same rows, and columns below a list."""
        groups: dict[object, list[PageLocations]] = defaultdict(list)
        for pages in located:
            leaf = pages.chunk.leaf
            groups[_list_above(self.schema, leaf) if leaf.is_repeated else pages.first_rows.tobytes()].append(pages)
        return [_bundle(columns, rows) for columns in groups.values()]

    def _decoded(self, bundle: _Bundle, pages: HeldPages) -> pa.Table:
        columns = []
        for located, numbers in bundle.pages:
            span = located.chunk.dictionary
            dictionary = None if span is None else pages.chunk(ChunkSpan(*span, 0))
            contents = [pages.chunk(_span(located, page)) for page in numbers]
            stated = [located.values(page, content) for page, content in zip(numbers, contents, strict=True)]
            unpacked = sum(size for _, size in stated) + (0 if dictionary is None else dictionary_size(dictionary))
            columns.append(
                ChosenPages(
                    column=located.chunk.leaf.index,
                    metadata=located.chunk.metadata,
                    dictionary=dictionary,
                    pages=contents,
                    values=sum(values for values, _ in stated),
                    unpacked=unpacked,
                )
            )
        return decoded(self.chunks.schema, len(bundle.rows), columns)


def _bundle(columns: Sequence[PageLocations], rows: Rows) -> _Bundle:
    """The same rows in each column."""
    total = columns[0].chunk.rows
    borders = np.append(reduce(np.intersect1d, [column.first_rows for column in columns]), total)
    ranges = np.unique(np.searchsorted(borders, rows, side="right") - 1)
    spans = [(borders[number], borders[number + 1]) for number in ranges]
    pages = [
        (
            column,
            [
                page
                for start, end in spans
                for page in range(*(int(position) for position in np.searchsorted(column.first_rows, (start, end))))
            ],
        )
        for column in columns
    ]
    return _Bundle(pages, np.concatenate([np.arange(start, end) for start, end in spans]))


def _spans(located: PageLocations, numbers: Sequence[int]) -> list[ChunkSpan]:
    dictionary = located.chunk.dictionary
    return [
        *([] if dictionary is None else [ChunkSpan(*dictionary, 0)]),
        *(_span(located, page) for page in numbers),
    ]


def _span(located: PageLocations, page: int) -> ChunkSpan:
    start = int(located.starts[page])
    return ChunkSpan(start, start + int(located.sizes[page]), 0)


def _columns(table: pa.Table, held: Rows, rows: Rows) -> dict[str, pa.Array]:
    places = pa.array(np.searchsorted(held, rows))
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
    batch.validate()
    return {name: batch.column(name).take(places) for name in batch.schema.names}


def _list_above(schema: pa.Schema, leaf: ParquetLeaf) -> tuple[str, ...] | None:
    """The topmost list or map."""
    kind = schema.field(leaf.parts[0]).type
    for depth in range(1, len(leaf.parts)):
        if not pa.types.is_struct(kind):
            return leaf.parts[:depth]
        kind = kind.field(leaf.parts[depth]).type
    return None
