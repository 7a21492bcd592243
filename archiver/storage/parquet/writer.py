"""Writes one Parquet file of archived rows to the spool.

A row group ends at 128 Ki rows or about 64 MiB encoded. Memory holds one, up to four times as large in Arrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

import pyarrow as pa

from archiver.errors import StorageError
from archiver.storage.footer import footer_of
from archiver.storage.parquet.bloom_filters import FilterSize, filter_sizes
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.columns.plan import ColumnPlan
from archiver.storage.parquet.encodings import NEVER_DICTIONARY, OFFSET, SAMPLE, Encodings, choose_encodings
from archiver.storage.parquet.leaves import ParquetLeaf, leaves_and_paths
from archiver.storage.parquet.metrics import FORMAT, column_metrics, measured_modes, nan_counts
from archiver.storage.row_columns import RowTotals
from archiver.storage.row_order import RowOrder
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile, spool_error
from archiver.storage.value_sets import SetLimits
from catalog.model import DataFileInfo
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition
from catalog.value_terms import ValueTerms
from schema_mapping import names

GROUP_ROWS = 128 << 10
GROUP_BYTES = 64 << 20
FIXED_WEIGHT = 0.25
"""The weight of a byte of a fixed-width column in a row group's size. Wide messages are mostly zeros and nulls, which
encode to almost nothing: with full weight, row groups would have few rows and much metadata.
"""
SMALL_ROWS = 1024
"""Batches with fewer rows are joined."""
EXPECTED_RATIO = 0.5
"""File bytes for each byte counted in this way, until the first row group of a file shows its real ratio."""

PARTITION = f"{names.KAFKA}.{names.PARTITION}"


class ParquetSegmentWriter:
    def __init__(self, spool_file: SpoolFile, layout: SegmentLayout, *, compression_level: int) -> None:
        self._file = spool_file
        self._layout = layout
        self._leaves, _ = leaves_and_paths(layout.schema)
        self._modes = measured_modes(self._leaves, layout.table_properties)
        self._discount = (1 - FIXED_WEIGHT) * fixed_row_bytes(self._leaves)
        self._sink = _sink(spool_file)
        self._compression_level = compression_level
        self._writer: FileWriter | None = None
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = 0
        self._gathered_bytes = 0
        self._flushed_bytes = 0
        self._nans: Counter[int] = Counter()
        self._size = 0
        self._totals = RowTotals()
        self._order = RowOrder()
        self._is_closed = False

    @property
    def rows(self) -> int:
        return self._totals.rows

    @property
    def size_bytes(self) -> int:
        written = self._writer.size if self._writer else 0
        ratio = written / self._flushed_bytes if self._flushed_bytes else EXPECTED_RATIO
        self._size = max(self._size, written + int(self._gathered_bytes * ratio))
        return self._size

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.schema != self._layout.schema:
            raise StorageError("rows don't have the columns that the file was started with", file=str(self._file))
        for start in range(0, rows.num_rows, GROUP_ROWS):
            for part in _halves(rows.slice(start, GROUP_ROWS), GROUP_BYTES):
                self._gather(part)
        self._totals.add(rows)

    def close(
        self,
        *,
        origin: SegmentOrigin | None,
        path: str,
        digest: str | None = None,
        recognition: Recognition | None = None,
        partition: PartitionTuple = UNPLACED,
        largest_record: int | None = None,
    ) -> DataFileInfo:
        try:
            self._flush()
            writer = self._writer or self._begin(self._layout.schema.empty_table())
            pairs = footer_of(self._layout, origin, digest, recognition, partition, largest_record=largest_record)
            footer = writer.close(pairs)
            self._sink.close()
        except OSError as error:
            raise spool_error(error, self._file.path) from error
        self._is_closed = True
        metrics = column_metrics(footer, self._leaves, self._modes)
        low, high = self._totals.timestamps or (None, None)
        return DataFileInfo(
            path=path,
            size_bytes=self._file.size,
            rows=self._totals.rows,
            partition=partition,
            raw_values=self._totals.raw_values,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=dict(self._nans),
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
            min_timestamp=low,
            max_timestamp=high,
            digest=digest,
            format=FORMAT,
            recognition=recognition,
            is_sorted=self._order.is_sorted,
            values=ValueTerms.of_sets(writer.sets),
        )

    def abort(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._gathered = []
        with suppress(OSError):  # the file can be dropped even if the disk is full
            self._sink.close()
        self._file.remove()

    def _gather(self, part: pa.RecordBatch) -> None:
        size = max(0, part.nbytes - int(self._discount * part.num_rows))
        if self._gathered_rows + part.num_rows > GROUP_ROWS or self._gathered_bytes + size > GROUP_BYTES:
            self._flush()
        self._gathered.append(part)
        self._merge_small()
        self._gathered_rows += part.num_rows
        self._gathered_bytes += size

    def _merge_small(self) -> None:
        while len(self._gathered) > 1:
            *_, previous, last = self._gathered
            if previous.num_rows > last.num_rows or last.num_rows >= SMALL_ROWS:
                return
            self._gathered[-2:] = [pa.concat_batches([previous, last])]

    def _flush(self) -> None:
        if not self._gathered:
            return
        table = pa.Table.from_batches(self._gathered, self._layout.schema)
        try:
            writer = self._writer or self._begin(table)
            writer.write(self._gathered, is_sorted=self._order.add(self._gathered))
        except OSError as error:
            raise spool_error(error, self._file.path) from error
        self._nans.update(nan_counts(self._leaves, self._modes, table))
        self._flushed_bytes += self._gathered_bytes
        self._gathered, self._gathered_rows, self._gathered_bytes = [], 0, 0

    def _begin(self, first: pa.Table) -> FileWriter:
        sample = pa.concat_batches(first.slice(0, SAMPLE).to_batches() or [_no_rows(first.schema)])
        plans = column_plans(
            self._leaves,
            choose_encodings(self._leaves, sample, is_plain=self._layout.plain_encodings),
            self._compression_level,
            counted=frozenset(identifier for identifier, mode in self._modes.items() if mode.counts),
            filters=filter_sizes(self._leaves, self._layout.bloom_filters, first),
        )
        by_name = {leaf.name: leaf.index for leaf in self._leaves}
        sorted_by = [by_name[name] for name in (PARTITION, OFFSET) if name in by_name]
        limits = self._layout.set_limits
        self._writer = FileWriter(
            self._sink,
            self._layout.schema,
            plans,
            sorted_by=sorted_by,
            listed={} if limits is None else listed_leaves(self._leaves),
            limits=limits or SetLimits(),
        )
        return self._writer


def fixed_row_bytes(leaves: tuple[ParquetLeaf, ...]) -> float:
    return sum(_width(leaf.type) for leaf in leaves if not leaf.is_repeated)


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width / 8)
    except ValueError:  # no fixed width
        return 4.0


def column_plans(
    leaves: Sequence[ParquetLeaf],
    encodings: Encodings,
    compression_level: int,
    *,
    counted: frozenset[int] = frozenset(),
    filters: Mapping[int, FilterSize] = MappingProxyType({}),
) -> tuple[ColumnPlan, ...]:
    """The compression level is for long strings (measured).

    Repeated columns and `__unrecognized__` get statistics only if `counted`: no engine prunes by them.
    """
    return tuple(
        ColumnPlan(
            leaf=leaf,
            encoding=encodings.chosen[leaf.index],
            level=_level(leaf.index, encodings, compression_level),
            has_statistics=_has_statistics(leaf, counted),
            filter_size=filters[leaf.index].size if leaf.index in filters else 0,
        )
        for leaf in leaves
    )


def listed_leaves(leaves: Sequence[ParquetLeaf]) -> dict[int, int]:
    """Field ids of leaves with value sets: texts, bytes and whole numbers, also in lists and maps.

    Equal values of other types may have several forms (0.0, -0.0), or aren't looked up as stored.
    """
    return {
        leaf.index: leaf.field_id
        for leaf in leaves
        if leaf.field_id is not None and leaf.name not in NEVER_DICTIONARY and _is_listed(leaf.type)
    }


def _is_listed(kind: pa.DataType) -> bool:
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return bool(texts or pa.types.is_int32(kind) or pa.types.is_int64(kind))


def _level(place: int, encodings: Encodings, most: int) -> int | None:
    if place in encodings.constant:
        return None
    return most if place in encodings.long else min(1, most)


def _halves(rows: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """A part has at most `limit` bytes, or one row."""
    if rows.nbytes <= limit or rows.num_rows <= 1:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from _halves(rows.slice(0, middle), limit)
    yield from _halves(rows.slice(middle), limit)


def _has_statistics(leaf: ParquetLeaf, counted: frozenset[int]) -> bool:
    return not leaf.is_repeated or leaf.field_id in counted or leaf.name.endswith(names.UNRECOGNIZED)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _sink(file: SpoolFile) -> pa.NativeFile:
    try:
        return file.sink()
    except OSError as error:
        raise spool_error(error, file.path) from error
