"""Writes a Parquet file: row groups, bloom filters, indexes and footer."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from archiver.errors import StorageError
from archiver.storage.parquet.columns.column_encoder import Chunk, ChunkWriter, Column, Rows
from archiver.storage.parquet.columns.file_schema import FileSchema
from archiver.storage.parquet.columns.plan import ColumnPlan, NullNotAllowed
from archiver.storage.parquet.compact_thrift import BINARY, BOOL, I32, I64, LIST, STRUCT, Fields, packed
from archiver.storage.parquet.file_end import MAGIC, FileEnd
from archiver.storage.parquet.index_blob import FOOTER_KEY, BlobPlace, blob_of, segment_sums
from archiver.storage.value_sets import SetLimits, SetsOfBlocks

CREATED_BY: Final = b"archiver version 1.0.0"
"""Readers go by names and versions of this form to work around the known mistakes of writers."""
_VERSION: Final = 2
_USUAL_LIMITS: Final = SetLimits()

# By their ids and kinds in parquet.thrift: of FileMetaData and KeyValue,
_FILE_VERSION, _ROWS, _GROUPS, _PAIRS, _CREATED_BY = (1, I32), (3, I64), (4, LIST), (5, LIST), (6, BINARY)
_KEY, _VALUE = (1, BINARY), (2, BINARY)
# of RowGroup and SortingColumn,
_COLUMNS, _UNPACKED, _GROUP_ROWS, _SORTING, _START, _SIZE = (1, LIST), (2, I64), (3, I64), (4, LIST), (5, I64), (6, I64)
_COLUMN, _IS_DESCENDING, _NULLS_FIRST = (1, I32), (2, BOOL), (3, BOOL)
# of ColumnChunk,
_FILE_OFFSET, _METADATA = (2, I64), (3, STRUCT)
_OFFSET_INDEX, _OFFSET_INDEX_SIZE, _COLUMN_INDEX, _COLUMN_INDEX_SIZE = (4, I64), (5, I32), (6, I64), (7, I32)
# of BloomFilterHeader.
_FILTER_BYTES, _ALGORITHM, _HASH, _COMPRESSION = (1, I32), (2, STRUCT), (3, STRUCT), (4, STRUCT)
_FIRST_OF_UNION: Final[Fields] = {(1, STRUCT): {}}


@dataclass(frozen=True, slots=True)
class _Group:
    rows: int
    chunks: tuple[Chunk, ...]
    filters: Mapping[int, tuple[int, int]]
    """Position and size of bloom filters, by column number."""
    sums: Mapping[int, bytes]
    """Their checksums."""
    is_sorted: bool


class FileWriter:
    """Buffers one page, one dictionary and all page indexes.

    `sorted_by`: leaves that rows are sorted by, ascending. `listed`: field ids by leaf, of columns with value sets.
    """

    def __init__(
        self,
        sink: pa.NativeFile,
        schema: pa.Schema,
        plans: Sequence[ColumnPlan],
        *,
        sorted_by: Sequence[int] = (),
        listed: Mapping[int, int] = MappingProxyType({}),
        limits: SetLimits = _USUAL_LIMITS,
    ) -> None:
        self._sink = sink
        self._columns_of_rows = schema
        self._schema = FileSchema.of_columns(schema)
        self._sorted_by = tuple(sorted_by)
        self._columns = planned_columns(schema, plans)
        self._groups: list[_Group] = []
        self._listed, self._sets, self._limits = listed, SetsOfBlocks(listed.values(), limits.most_held), limits
        self.sets: Mapping[int, frozenset[int | bytes]] = {}
        """The sets of values in the file, by field id, when it is closed."""
        self._size = 0
        self._is_broken = False
        self._put(MAGIC)

    @property
    def size(self) -> int:
        return self._size

    def write(self, batches: Iterable[pa.RecordBatch], *, is_sorted: bool = True) -> None:
        """Write one row group. `is_sorted`: in the file's order.

        Raises OSError if the sink does, StorageError for rows that can't be written. Unusable after an error.
        """
        self._check()
        row_group = list(batches)
        if any(batch.schema != self._columns_of_rows for batch in row_group):
            raise StorageError("rows don't have the columns that the file was started with")
        rows = Rows(row_group)
        if not rows.rows:
            return
        writer = ChunkWriter(self._sink, self._size)
        self._is_broken = True
        chunks = tuple(self._written(writer, number, rows) for number in range(len(self._columns)))
        self._size = writer.written
        self._sets.end_block(rows.rows)
        self._groups.append(_Group(rows.rows, chunks, *self._put_filters(chunks), is_sorted))
        self._is_broken = False

    def close(self, pairs: Mapping[str, str]) -> pq.FileMetaData:
        """The sink stays open."""
        self._check()
        self._is_broken = True
        column_indexes = self._put_all([chunk.column_index for group in self._groups for chunk in group.chunks])
        offset_indexes = self._put_all([chunk.offset_index for group in self._groups for chunk in group.chunks])
        pairs = {**pairs, **self._put_blob()}
        end = FileEnd.of_footer(packed(self._footer(pairs, column_indexes, offset_indexes)))
        self._put(end.with_checksum)
        return pq.read_metadata(pa.BufferReader(MAGIC + end.data))

    def _check(self) -> None:
        if self._is_broken:
            raise StorageError("the file can't go on: writing it failed before, or it is finished")

    def _written(self, writer: ChunkWriter, number: int, rows: Rows) -> Chunk:
        column, listed = self._columns[number], self._listed.get(number)
        try:
            chunk = writer.write(column, rows, self._sets.most_of(listed, rows.rows))
        except OverflowError as error:
            raise StorageError("a row is too large for a page of 2 GiB", column=column.name) from error
        except NullNotAllowed as error:
            raise StorageError("a row has a null where its column allows none", column=column.name) from error
        if listed is not None:
            self._sets.add(listed, chunk.distinct)
            chunk.distinct = None
        return chunk

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self._size += len(data)

    def _put_all(self, parts: Sequence[bytes | None]) -> list[tuple[int, int] | None]:
        places: list[tuple[int, int] | None] = []
        at = self._size
        for part in parts:
            places.append(None if part is None else (at, len(part)))
            at += len(part or b"")
        self._put(b"".join(filter(None, parts)))
        return places

    def _put_filters(self, chunks: Sequence[Chunk]) -> tuple[Mapping[int, tuple[int, int]], Mapping[int, bytes]]:
        places, sums = {}, {}
        for index, chunk in enumerate(chunks):
            if chunk.bloom_filter is not None:
                start = self._size
                self._put(filter_header(len(chunk.bloom_filter)) + chunk.bloom_filter)
                places[index] = start, self._size - start
                sums[index] = segment_sums(chunk.bloom_filter)
                chunk.bloom_filter = None
        return places, sums

    def _put_blob(self) -> Mapping[str, str]:
        checks = {
            (number, index): sums for number, group in enumerate(self._groups) for index, sums in group.sums.items()
        }
        blob, self.sets = blob_of(self._sets.sets, checks, self._limits.bytes_of(self._size))
        if not blob:
            return {}
        position = BlobPlace(self._size, len(blob), zlib.crc32(blob))
        self._put(blob)
        return {FOOTER_KEY: position.text}

    def _footer(
        self,
        pairs: Mapping[str, str],
        column_indexes: Sequence[tuple[int, int] | None],
        offset_indexes: Sequence[tuple[int, int] | None],
    ) -> Fields:
        indexes = iter(zip(column_indexes, offset_indexes, strict=True))
        groups = [self._group(group, [next(indexes) for _ in group.chunks]) for group in self._groups]
        fields: Fields = {
            **self._schema.fields,
            _FILE_VERSION: _VERSION,
            _ROWS: sum(group.rows for group in self._groups),
            _GROUPS: (STRUCT, groups),
            _CREATED_BY: CREATED_BY,
        }
        if pairs:
            fields[_PAIRS] = STRUCT, [{_KEY: key.encode(), _VALUE: text.encode()} for key, text in pairs.items()]
        return fields

    def _group(self, group: _Group, indexes: Sequence[tuple[tuple[int, int] | None, tuple[int, int] | None]]) -> Fields:
        fields: Fields = {
            _COLUMNS: (
                STRUCT,
                [
                    _chunk(chunk, group.filters.get(number), *places)
                    for number, (chunk, places) in enumerate(zip(group.chunks, indexes, strict=True))
                ],
            ),
            _UNPACKED: sum(chunk.unpacked for chunk in group.chunks),
            _GROUP_ROWS: group.rows,
            _START: group.chunks[0].start,
            _SIZE: sum(chunk.size for chunk in group.chunks),
        }
        if self._sorted_by and group.is_sorted:
            fields[_SORTING] = (
                STRUCT,
                [{_COLUMN: index, _IS_DESCENDING: False, _NULLS_FIRST: False} for index in self._sorted_by],
            )
        return fields


def _chunk(
    chunk: Chunk,
    bloom_filter: tuple[int, int] | None,
    column_index: tuple[int, int] | None,
    offset_index: tuple[int, int] | None,
) -> Fields:
    fields: Fields = {_FILE_OFFSET: 0, _METADATA: chunk.metadata(*(bloom_filter or (None, 0)))}
    if offset_index:
        fields[_OFFSET_INDEX], fields[_OFFSET_INDEX_SIZE] = offset_index
    if column_index:
        fields[_COLUMN_INDEX], fields[_COLUMN_INDEX_SIZE] = column_index
    return fields


def filter_header(size: int) -> bytes:
    return packed(
        {_FILTER_BYTES: size, _ALGORITHM: _FIRST_OF_UNION, _HASH: _FIRST_OF_UNION, _COMPRESSION: _FIRST_OF_UNION}
    )


def planned_columns(schema: pa.Schema, plans: Sequence[ColumnPlan]) -> tuple[Column, ...]:
    compressors = {plan.level: zstandard.ZstdCompressor(plan.level) for plan in plans if plan.level is not None}
    return tuple(
        Column(
            leaf.top,
            leaf.steps,
            (leaf.form.memory, leaf.form.order, leaf.form.physical_type, leaf.form.width),
            plan.leaf.parts,
            encoding=int(plan.encoding),
            compressor=None if plan.level is None else compressors[plan.level],
            has_statistics=plan.has_statistics,
            filter_size=plan.filter_size,
        )
        for leaf, plan in zip(FileSchema.of_columns(schema).leaves, plans, strict=True)
    )
