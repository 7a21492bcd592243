"""Group decoded batches into records for files, independent of fetches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.files.records import CONTENT_COLUMNS, LOG_COLUMNS, Batches, Records
from archiver.ingest.kafka_log.ingest_clock import IngestClock, batch_times
from archiver.wire.columns import BatchIndex, DecodedBatches, Int64Array

GROUP_BYTES: Final = 8 << 20
GROUP_ROWS: Final = 64 << 10
_ROW_BYTES: Final = 80
"""Bytes of the columns that every record has, besides its key and value."""


class Grouper:
    def __init__(
        self,
        *,
        plan_time_ms: int,
        clock: IngestClock | None = None,
        group_bytes: int = GROUP_BYTES,
        group_rows: int = GROUP_ROWS,
    ) -> None:
        self._plan_time_ms = plan_time_ms
        self._clock = clock or IngestClock()
        self._group_bytes = group_bytes
        self._group_rows = group_rows
        self._pieces: deque[pa.RecordBatch] = deque()
        self._waiting = np.empty((4, 0), np.int64)
        self._times = np.empty(0, np.int64)
        self._grouped_until: int | None = None
        self._read_until = 0

    def push(self, decoded: DecodedBatches) -> Iterator[Records]:
        if self._grouped_until is None:
            self._grouped_until = decoded.start_offset
        self._read_until = decoded.next_offset
        batches = decoded.batches
        if not len(batches):
            return
        sizes = decoded_sizes(decoded.records, batches)
        self._pieces.append(decoded.records)
        arrived = np.stack([batches.rows, sizes, batches.base_offset, batches.last_offset])
        self._waiting = np.concatenate([self._waiting, arrived], axis=1)
        times = self._clock.push(batch_times(batches, self._plan_time_ms), sizes)
        self._times = np.concatenate([self._times, times])
        yield from self._groups(complete=False)

    def finish(self) -> Iterator[Records]:
        """Yield the remaining groups, and trailing offsets without records."""
        self._times = np.concatenate([self._times, self._clock.finish()])
        yield from self._groups(complete=True)
        if self._grouped_until is not None and self._grouped_until < self._read_until:
            yield Records.none(self._grouped_until, self._read_until)

    def _groups(self, *, complete: bool) -> Iterator[Records]:
        while count := self._next_length(complete=complete):
            rows, _, first_offset, last_offset = self._waiting[:, :count]
            assert self._grouped_until is not None
            yield records_of(
                self._take(int(rows.sum())),
                Batches(first_offset=first_offset, last_offset=last_offset, rows=rows, times=self._times[:count]),
                start_offset=self._grouped_until,
            )
            self._grouped_until = int(last_offset[-1]) + 1
            self._waiting = self._waiting[:, count:]
            self._times = self._times[count:]

    def _next_length(self, *, complete: bool) -> int:
        decided = len(self._times)
        rows, sizes, _, _ = self._waiting[:, :decided]
        full = np.flatnonzero((np.cumsum(sizes) >= self._group_bytes) | (np.cumsum(rows) >= self._group_rows))
        if len(full):
            return int(full[0]) + 1
        return decided if complete else 0

    def _take(self, rows: int) -> pa.RecordBatch:
        taken: list[pa.RecordBatch] = []
        while rows:
            piece = self._pieces.popleft()
            taken.append(piece.slice(0, rows))
            if piece.num_rows > rows:
                self._pieces.appendleft(piece.slice(rows))
            rows -= taken[-1].num_rows
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)


def records_of(decoded: pa.RecordBatch, batches: Batches, *, start_offset: int) -> Records:
    return Records(
        start_offset=start_offset,
        end_offset=int(batches.last_offset[-1]) + 1,
        content=decoded.select(CONTENT_COLUMNS.names),
        batches=batches,
        log=decoded.select(LOG_COLUMNS.names),
    )


def decoded_sizes(records: pa.RecordBatch, batches: BatchIndex) -> Int64Array:
    bounds = np.append(batches.first_row, records.num_rows)
    sizes = batches.rows * _ROW_BYTES
    for name in ("key", "value"):
        column = records.column(name)
        offsets = np.frombuffer(column.buffers()[1], np.int32)
        sizes += np.diff(offsets[bounds + column.offset].astype(np.int64))
    return sizes
