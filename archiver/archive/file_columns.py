"""Manifest entries in Arrow columns: 200 bytes per file instead of 31 KiB.

Bounds are both null if one is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.typedef import Record

from archiver.storage.row_columns import MICROS_PER_MILLI, NO_TIMESTAMP
from schema_mapping.columns.fixed import (
    APPEND_TIMESTAMP_ID,
    EVENT_TIMESTAMP_ID,
    INGEST_TIMESTAMP_ID,
    OFFSET_ID,
    PARTITION_ID,
    RAW_TIMESTAMP_ID,
)

PATH: Final = "path"
ROWS: Final = "rows"
LOW_PARTITION: Final = "low_partition"
HIGH_PARTITION: Final = "high_partition"
LOW_OFFSET: Final = "low_offset"
HIGH_OFFSET: Final = "high_offset"
LATEST: Final = "latest"
LATEST_INGEST: Final = "latest_ingest"
NAN_BOUNDS: Final = "nan_bounds"
SEQUENCE: Final = "sequence_number"

BOUNDS: Final = {"partition": (LOW_PARTITION, HIGH_PARTITION), "offset": (LOW_OFFSET, HIGH_OFFSET)}
"""The columns with the bounds of a number that Kafka assigned."""

COLUMNS: Final = pa.schema(
    [
        pa.field(PATH, pa.large_string(), nullable=False),
        pa.field("format", pa.string(), nullable=False),
        pa.field(ROWS, pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field(SEQUENCE, pa.int64(), nullable=False),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field(LOW_PARTITION, pa.int32()),
        pa.field(HIGH_PARTITION, pa.int32()),
        pa.field(LOW_OFFSET, pa.int64()),
        pa.field(HIGH_OFFSET, pa.int64()),
        pa.field(LATEST, pa.int64()),
        pa.field(LATEST_INGEST, pa.int64()),
        pa.field(NAN_BOUNDS, pa.bool_(), nullable=False),
    ]
)
"""`place` holds the partition values as text (see `as_text`). `latest`, `latest_ingest` and `nan_bounds` are as in
TableFile.
"""

NO_IDS: Final[frozenset[int]] = frozenset()
PIECE_ROWS = 8192
_LENGTHS: Final = (4, 8)
MICROS_PER_TIME_COLUMN: Final = (
    (EVENT_TIMESTAMP_ID, MICROS_PER_MILLI),
    (APPEND_TIMESTAMP_ID, MICROS_PER_MILLI),
    (RAW_TIMESTAMP_ID, 1),
)
"""Columns with the timestamps of records, and how many of their units are a millisecond."""


def columns_of(counted: frozenset[int], bounded: frozenset[int] = NO_IDS) -> pa.Schema:
    """COLUMNS, null counts of the field ids `counted`, and bounds of the field ids `bounded`.

    Bounds are in Iceberg's single-value serialization.
    """
    schema = COLUMNS
    for identifier in sorted(counted):
        schema = schema.append(pa.field(nulls_of(identifier), pa.int64()))
    for identifier in sorted(bounded):
        schema = schema.append(pa.field(low_of(identifier), pa.binary()))
        schema = schema.append(pa.field(high_of(identifier), pa.binary()))
    return schema


def nulls_of(field_id: int) -> str:
    return f"nulls_{field_id}"


def low_of(field_id: int) -> str:
    return f"low_{field_id}"


def high_of(field_id: int) -> str:
    return f"high_{field_id}"


def in_columns(
    entries: Iterable[ManifestEntry], counted: frozenset[int], bounded: frozenset[int] = NO_IDS
) -> Iterator[pa.RecordBatch]:
    """Convert entries, with one in memory at a time."""
    schema = columns_of(counted, bounded)
    counts, bounds = sorted(counted), sorted(bounded)
    places: dict[tuple[object, ...], str] = {}
    rows: list[tuple[Any, ...]] = []
    for entry in entries:
        values = values_of(entry.data_file.partition)
        text = places.get(values) or places.setdefault(values, as_text(values))
        rows.append(_row(entry, text, counts, bounds))
        if len(rows) == PIECE_ROWS:
            yield _batch(rows, schema)
            rows = []
    if rows:
        yield _batch(rows, schema)


def values_of(partition: Record) -> tuple[object, ...]:
    return tuple(partition[index] for index in range(len(partition)))


def as_text(values: tuple[object, ...]) -> str:
    return json.dumps(values, default=repr)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(entry: ManifestEntry, place: str, counted: list[int], bounded: list[int]) -> tuple[Any, ...]:
    file = entry.data_file
    lower, upper, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    return (
        file.file_path,
        file.file_format.value.lower(),
        file.record_count,
        file.file_size_in_bytes,
        entry.sequence_number or 0,
        file.spec_id,
        place,
        *bounds_of(lower, upper, PARTITION_ID),
        *bounds_of(lower, upper, OFFSET_ID),
        _latest(file, upper, nulls),
        _number(upper.get(INGEST_TIMESTAMP_ID)),
        any(count > 0 and field_id in lower for field_id, count in (file.nan_value_counts or {}).items()),
        *(nulls.get(identifier) for identifier in counted),
        *(bounds.get(identifier) for identifier in bounded for bounds in (lower, upper)),
    )


def bounds_of(lower: dict[int, bytes], upper: dict[int, bytes], field_id: int) -> tuple[int | None, int | None]:
    """Return bounds of integers or timestamps."""
    low, high = _number(lower.get(field_id)), _number(upper.get(field_id))
    return (None, None) if low is None or high is None else (low, high)


def _latest(file: DataFile, upper: dict[int, bytes], nulls: dict[int, int]) -> int | None:
    latest = NO_TIMESTAMP
    for field_id, unit in MICROS_PER_TIME_COLUMN:
        if nulls.get(field_id) == file.record_count:
            continue
        high = _number(upper.get(field_id))
        if high is None:
            return None
        latest = max(latest, -(-high // unit))  # times of records are cut towards 1970
    return latest


def _number(bound: bytes | None) -> int | None:
    """A column promoted to long may have bounds of an int."""
    return int.from_bytes(bound, "little", signed=True) if bound is not None and len(bound) in _LENGTHS else None
