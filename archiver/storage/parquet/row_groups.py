"""The row groups in a footer.

Without a checksum, chunks are checked first: pyarrow can end the process at a bad one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow.parquet as pq

from archiver.errors import BadSegment
from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.held_pages import ChunkSpan
from archiver.storage.parquet.leaves import ParquetLeaf
from archiver.storage.row_columns import MICROS_PER_MILLI
from archiver.storage.segment import Block, RowRange
from schema_mapping.columns.fixed import (
    APPEND_TIMESTAMP_ID,
    EVENT_TIMESTAMP_ID,
    OFFSET_ID,
    PARTITION_ID,
    RAW_TIMESTAMP_ID,
)

_CONTRADICTS_ITSELF: Final = (
    "the file's footer contradicts itself: restore it from a backup, or archive its range again"
)


_BOUNDED: Final = frozenset(
    {
        ("INT32", "NONE"),
        ("INT64", "NONE"),
        ("INT32", "INT"),
        ("INT64", "INT"),
        ("INT64", "TIMESTAMP"),
        ("BYTE_ARRAY", "STRING"),
        ("BYTE_ARRAY", "NONE"),
    }
)
"""Physical and logical types whose bounds are compared as they are: signed numbers, or bytes."""


class RowGroups:
    """`askable` marks chunks that are safe for pyarrow; None: all."""

    def __init__(
        self,
        footer: pq.FileMetaData,
        leaves: Sequence[ParquetLeaf],
        path: str,
        *,
        askable: bytes | None,
        pages_end: int,
    ) -> None:
        self._footer, self._leaves, self._path = footer, leaves, path
        self._askable, self.pages_end = askable, pages_end
        self._columns = len(footer.schema)
        self._leaf_index = {leaf.field_id: leaf.index for leaf in leaves if leaf.field_id is not None}

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        blocks = []
        first_row = 0
        for index in range(self._footer.num_row_groups):
            group = self._footer.row_group(index)
            if rows is None or self._may_hold(index, group, rows):
                blocks.append(self._block(index, first_row, group))
            first_row += group.num_rows
        return tuple(blocks)

    def spans(self, index: int, leaves: Sequence[ParquetLeaf]) -> list[tuple[ParquetLeaf, ChunkSpan]]:
        """Leave out chunks that pyarrow can't read. Raises BadSegment for impossible positions."""
        group, spans = self._footer.row_group(index), []
        for leaf in leaves:
            if not self._may_ask(index, leaf.index):
                continue
            span = ChunkSpan.of_chunk(group.column(leaf.index))
            if not 0 <= span.start <= span.end <= self.pages_end:
                raise BadSegment(_CONTRADICTS_ITSELF, file=self._path, column=leaf.path, row_group=index)
            spans.append((leaf, span))
        return spans

    def set_counts(self, index: int, field_ids: frozenset[int]) -> dict[int, int]:
        counts = {}
        for identifier in field_ids & self._leaf_index.keys():
            count = set_values(self.chunk(index, self._leaf_index[identifier]))
            if count is not None:
                counts[identifier] = count
        return counts

    def value_bounds(self, index: int, field_id: int) -> tuple[int, int] | tuple[bytes, bytes] | None:
        statistics = self._statistics(index, field_id)
        if statistics is None or not statistics.has_min_max:
            return None
        kind = (statistics.physical_type, statistics.logical_type.type)
        return (statistics.min_raw, statistics.max_raw) if kind in _BOUNDED else None

    def chunk(self, group: int, column: int) -> pq.ColumnChunkMetaData:
        """Raise BadSegment if the footer contradicts itself."""
        if not self._may_ask(group, column):
            path = next((leaf.path for leaf in self._leaves if leaf.index == column), "")
            raise BadSegment(_CONTRADICTS_ITSELF, file=self._path, column=path, row_group=group)
        return self._footer.row_group(group).column(column)

    def _may_ask(self, group: int, column: int) -> bool:
        return self._askable is None or bool(self._askable[group * self._columns + column])

    def _block(self, index: int, first_row: int, group: pq.RowGroupMetaData) -> Block:
        low, high = self._bounds(index, OFFSET_ID) or (None, None)
        order = tuple((column.column_index, column.descending) for column in group.sorting_columns)
        by_offset = ((self._leaf_index.get(PARTITION_ID), False), (self._leaf_index.get(OFFSET_ID), False))
        return Block(
            index=index,
            first_row=first_row,
            rows=group.num_rows,
            size_bytes=group.total_byte_size,
            low_offset=low,
            high_offset=high,
            is_sorted=order[:2] == by_offset,
        )

    def _may_hold(self, index: int, group: pq.RowGroupMetaData, rows: RowRange) -> bool:
        partition = self._bounds(index, PARTITION_ID)
        if partition is not None and not partition[0] <= rows.partition <= partition[1]:
            return False
        offsets = self._bounds(index, OFFSET_ID)
        if offsets is not None and (offsets[1] < rows.start_offset or offsets[0] >= rows.end_offset):
            return False
        return rows.min_timestamp is None or self._may_be_as_late(index, group.num_rows, rows.min_timestamp)

    def _may_be_as_late(self, index: int, rows: int, timestamp: int) -> bool:
        for field_id, unit in (
            (EVENT_TIMESTAMP_ID, MICROS_PER_MILLI),
            (APPEND_TIMESTAMP_ID, MICROS_PER_MILLI),
            (RAW_TIMESTAMP_ID, 1),
        ):
            statistics = self._statistics(index, field_id)
            if statistics is None or not statistics.has_null_count:
                return True
            if statistics.null_count == rows:
                continue
            if not statistics.has_min_max or statistics.max_raw >= timestamp * unit:
                return True
        return False

    def _bounds(self, group: int, field_id: int) -> tuple[int, int] | None:
        statistics = self._statistics(group, field_id)
        if statistics is None or not statistics.has_min_max:
            return None
        return statistics.min_raw, statistics.max_raw

    def _statistics(self, group: int, field_id: int) -> Any:
        index = self._leaf_index.get(field_id)
        return None if index is None else self.chunk(group, index).statistics


def askable_of(footer: memoryview, parsed: pq.FileMetaData, path: str) -> bytes:
    """Mark the chunks that pyarrow can read. Raises BadSegment if there are none."""
    from archiver.storage.parquet.footer_check import askable_chunks  # most processes read only the archiver's files

    with suppress(ThriftError):
        askable = askable_chunks(footer)
        if len(askable) == len(parsed.schema) * parsed.num_row_groups:
            return askable
    raise BadSegment(_CONTRADICTS_ITSELF, file=path)


def set_values(chunk: pq.ColumnChunkMetaData) -> int | None:
    if not chunk.is_stats_set or not chunk.statistics.has_null_count:
        return None
    return int(chunk.num_values - chunk.statistics.null_count)
