"""Iceberg's column metrics from a Parquet footer, by the table's modes (`write.metadata.metrics.*`).

A bound that a row group lacks is left out.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archiver.errors import StorageError
from archiver.storage.parquet.leaves import ParquetLeaf
from schema_mapping import names
from schema_mapping.columns.fixed import APPEND_TIMESTAMP_ID, FLAT_INGEST_TIMESTAMP_ID, RAW_TIMESTAMP_ID

FORMAT: Final = "parquet"
"""Iceberg's name of the format."""

DEFAULT_MODE = "write.metadata.metrics.default"
COLUMN_MODE = "write.metadata.metrics.column."
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_SURROGATES = 0xD800
_AFTER_SURROGATES = 0xE000
_PACKED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """`length` cuts bounds to this many characters or bytes. None: whole."""

    counts: bool
    bounds: bool
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMetrics:
    """By field id. Bounds are in Iceberg's single-value serialization."""

    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


@lru_cache(maxsize=64)
def metrics_mode(text: str) -> MetricsMode:
    """Raises StorageError for an unknown mode."""
    mode = text.strip().lower()
    if mode == "none":
        return MetricsMode(counts=False, bounds=False)
    if mode == "counts":
        return MetricsMode(counts=True, bounds=False)
    if mode == "full":
        return MetricsMode(counts=True, bounds=True)
    if (cut := _TRUNCATE.fullmatch(mode)) and int(cut[1]) > 0:
        return MetricsMode(counts=True, bounds=True, length=int(cut[1]))
    raise StorageError("the table has a metrics mode that Iceberg doesn't know: correct the property", mode=text)


def metrics_modes(leaves: tuple[ParquetLeaf, ...], properties: Mapping[str, str]) -> dict[int, MetricsMode]:
    default = properties.get(DEFAULT_MODE, "truncate(16)")
    return {
        leaf.field_id: metrics_mode(properties.get(COLUMN_MODE + leaf.name, default))
        for leaf in leaves
        if leaf.field_id is not None
    }


ALWAYS_MEASURED = dict.fromkeys((APPEND_TIMESTAMP_ID, RAW_TIMESTAMP_ID, FLAT_INGEST_TIMESTAMP_ID), metrics_mode("full"))
"""Columns measured in any table.

With `kafka.event_timestamp` the first two exclude files from a replay by time. Engines filter by the flat copy of the
ingest timestamp.
"""


_ALWAYS_COUNTED = frozenset(
    f"{part}.{name}" for part in (names.KEY, names.VAL) for name in (names.ERR, names.UNRECOGNIZED)
)
"""Columns counted in any table: by them files without misfits are left unread."""


def measured_modes(leaves: tuple[ParquetLeaf, ...], properties: Mapping[str, str]) -> dict[int, MetricsMode]:
    modes = metrics_modes(leaves, properties) | ALWAYS_MEASURED
    for leaf in leaves:
        if leaf.name in _ALWAYS_COUNTED and leaf.field_id is not None and not modes[leaf.field_id].counts:
            modes[leaf.field_id] = MetricsMode(counts=True, bounds=False)
    return modes


def nan_counts(leaves: tuple[ParquetLeaf, ...], modes: Mapping[int, MetricsMode], rows: pa.Table) -> Counter[int]:
    """By field id; Parquet's footers lack them."""
    return Counter(
        {
            leaf.field_id: pc.sum(pc.is_nan(leaf.values(rows)), min_count=0).as_py()
            for leaf in leaves
            if pa.types.is_floating(leaf.type) and not leaf.is_repeated
            if leaf.field_id is not None and modes[leaf.field_id].counts
        }
    )


def column_metrics(
    footer: pq.FileMetaData, leaves: tuple[ParquetLeaf, ...], modes: Mapping[int, MetricsMode]
) -> ColumnMetrics:
    """Bounds are never NaN. A lower bound of zero is -0.0, an upper one 0.0."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for leaf in leaves:
        if leaf.field_id is None:
            continue
        chunks = [group.column(leaf.index) for group in groups]
        sizes[leaf.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        mode = modes[leaf.field_id]
        if not mode.counts:
            continue
        values[leaf.field_id] = sum(chunk.num_values for chunk in chunks)
        statistics = [chunk.statistics for chunk in chunks]
        if all(statistic is not None and statistic.has_null_count for statistic in statistics):
            nulls[leaf.field_id] = sum(statistic.null_count for statistic in statistics)
        if mode.bounds and not leaf.is_repeated and (bounds := _bounds(leaf, chunks, mode)):
            low, high = bounds
            lower[leaf.field_id] = low
            if high is not None:
                upper[leaf.field_id] = high
    return ColumnMetrics(
        column_sizes=sizes,
        value_counts=values,
        null_value_counts=nulls,
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=tuple(_start(group) for group in groups),
    )


def _bounds(
    leaf: ParquetLeaf, chunks: list[pq.ColumnChunkMetaData], mode: MetricsMode
) -> tuple[bytes, bytes | None] | None:
    extremes = _extremes(leaf, chunks)
    if extremes is None:
        return None
    low, high = extremes
    if pa.types.is_floating(leaf.type):
        if math.isnan(low) or math.isnan(high):
            return None
        low, high = low or -0.0, high or 0.0
    if pa.types.is_decimal(leaf.type):
        return _unscaled(low), _unscaled(high)
    physical = chunks[0].physical_type
    if physical in _PACKED:
        return struct.pack(_PACKED[physical], low), struct.pack(_PACKED[physical], high)
    return _cut(leaf.type, bytes(low), bytes(high), mode.length) if physical == "BYTE_ARRAY" else None


def _extremes(leaf: ParquetLeaf, chunks: list[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
    bounds: list[tuple[Any, Any]] = []
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        if statistics.null_count == chunk.num_values:
            continue
        if not statistics.has_min_max:
            return None
        bounds.append((_comparable(leaf.type, statistics.min_raw), _comparable(leaf.type, statistics.max_raw)))
    return (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None


def _comparable(kind: pa.DataType, raw: Any) -> Any:
    return int.from_bytes(raw, "big", signed=True) if pa.types.is_decimal(kind) and isinstance(raw, bytes) else raw


def _unscaled(number: int) -> bytes:
    """A decimal as in Iceberg: unscaled, big-endian, minimal."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _cut(kind: pa.DataType, low: bytes, high: bytes, length: int | None) -> tuple[bytes, bytes | None]:
    """The upper bound is None if no short one is high enough."""
    if length is None:
        return low, high
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = high.decode()
        return low.decode()[:length].encode(), high if len(text) <= length else _text_above(text[:length])
    return low[:length], high if len(high) <= length else _bytes_above(high[:length])


def _text_above(prefix: str) -> bytes | None:
    """Return the shortest text above all texts with this prefix."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    if not kept:
        return None
    code = ord(kept[-1]) + 1
    return (kept[:-1] + chr(_AFTER_SURROGATES if code == _SURROGATES else code)).encode()


def _bytes_above(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def _start(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    offset: int = first.data_page_offset
    if first.has_dictionary_page and first.dictionary_page_offset is not None:
        return min(offset, int(first.dictionary_page_offset))
    return offset
