"""Arrow columns of one partition's records, by offset. Times are ms since 1970."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.row_columns import LOG_APPEND_TIME
from schema_mapping import names

Int64Array: TypeAlias = npt.NDArray[np.int64]

CONTENT_COLUMNS: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]),
                    nullable=False,
                )
            ),
            nullable=False,
        ),
    ]
)
"""The columns that every source has. `timestamp` is the producer's time in ms, -1 for none."""

LOG_COLUMNS: Final = pa.schema(
    [
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("append_timestamp", pa.int64()),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int32(), nullable=False),
        pa.field("base_sequence", pa.int32(), nullable=False),
        pa.field("attributes", pa.int32(), nullable=False),
    ]
)
"""The columns that only a log with Kafka's batches has. `timestamp_type` is -1 for none, 0 for create time, 1 for
log-append time; `append_timestamp` is set for log-append time alone. -1 stands for no epoch, producer and sequence."""

_WITHOUT_LOG: Final = {
    "timestamp_type": 0,
    "append_timestamp": None,
    "leader_epoch": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "attributes": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """The borders of batches with records. Batches are never divided between files.

    `times` become the `ingest_timestamp`, which never falls within a file.
    """

    first_offset: Int64Array
    last_offset: Int64Array
    rows: Int64Array
    times: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, first: int, end: int) -> Batches:
        return Batches(
            first_offset=self.first_offset[first:end],
            last_offset=self.last_offset[first:end],
            rows=self.rows[first:end],
            times=self.times[first:end],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All records of one partition up to `end_offset`, exclusive; gaps count as archived.

    `log` is None without `LOG_COLUMNS`. Raises ValueError for contradicting parts.
    """

    start_offset: int
    end_offset: int
    content: pa.RecordBatch
    batches: Batches
    log: pa.RecordBatch | None = None

    def __post_init__(self) -> None:
        for columns, schema in ((self.content, CONTENT_COLUMNS), (self.log, LOG_COLUMNS)):
            if columns is not None and not columns.schema.equals(schema):
                raise ValueError(f"the columns of records must be\n{schema}\nand are\n{columns.schema}")
        rows = {len(self), int(self.batches.rows.sum()), len(self if self.log is None else self.log)}
        if len(rows) > 1:
            raise ValueError(f"columns and batches must have the same number of rows, and have {sorted(rows)}")
        borders = (self.start_offset, *(int(last) + 1 for last in self.batches.last_offset[-1:]), self.end_offset)
        if not 0 <= self.start_offset <= self.end_offset or list(borders) != sorted(borders):
            raise ValueError(f"offsets of records must rise: start, end of the last batch, and end are {borders}")

    def __len__(self) -> int:
        return int(self.content.num_rows)

    @classmethod
    def none(cls, start_offset: int, end_offset: int) -> Records:
        nothing = np.empty(0, np.int64)
        return cls(
            start_offset=start_offset,
            end_offset=end_offset,
            content=pa.RecordBatch.from_pylist([], CONTENT_COLUMNS),
            batches=Batches(first_offset=nothing, last_offset=nothing, rows=nothing, times=nothing),
        )

    def part(self, first: int, end: int, *, times: Int64Array | None = None) -> Records:
        """`first` and `end` (exclusive) are indexes of batches."""
        batches = self.batches.part(first, end)
        row, rows = int(self.batches.rows[:first].sum()), int(batches.rows.sum())
        last = self.batches.last_offset
        return Records(
            start_offset=int(last[first - 1]) + 1 if first else self.start_offset,
            end_offset=int(last[end - 1]) + 1 if end < len(last) else self.end_offset,
            content=self.content.slice(row, rows),
            batches=batches if times is None else replace(batches, times=times),
            log=None if self.log is None else self.log.slice(row, rows),
        )

    @property
    def columns(self) -> pa.RecordBatch:
        log = _without_log(len(self)) if self.log is None else self.log
        batches = self.batches
        borders = {
            names.BATCH_START: batches.first_offset,
            names.BATCH_END: batches.last_offset,
            names.INGEST_TIMESTAMP: batches.times,
        }
        repeated = [pa.array(np.repeat(values, batches.rows)) for values in borders.values()]
        return pa.RecordBatch.from_arrays(
            [*self.content.columns, *log.columns, *repeated],
            [*CONTENT_COLUMNS.names, *LOG_COLUMNS.names, *borders],
        )


def as_seen(columns: pa.RecordBatch, *, partition: int) -> pa.RecordBatch:
    is_append = pc.equal(columns.column("timestamp_type"), pa.scalar(LOG_APPEND_TIME, pa.int32()))
    seen = {
        "partition": pa.array(np.full(columns.num_rows, partition, np.int32)),
        "offset": columns.column("offset"),
        "timestamp_type": columns.column("timestamp_type"),
        "timestamp": pc.if_else(is_append, columns.column("append_timestamp"), columns.column("timestamp")),
        **{name: columns.column(name) for name in ("key", "value", "headers")},
    }
    return pa.RecordBatch.from_arrays(list(seen.values()), list(seen))


def _without_log(rows: int) -> pa.RecordBatch:
    columns = [
        pa.nulls(rows, field.type)
        if _WITHOUT_LOG[field.name] is None
        else pa.array(np.full(rows, _WITHOUT_LOG[field.name], field.type.to_pandas_dtype()))
        for field in LOG_COLUMNS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LOG_COLUMNS)
