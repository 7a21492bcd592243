"""Regroups decoded batches into groups of whole batches that don't depend on how the log was fetched.

The ingest clock looks at later batches, so batches wait here until their times are decided. A group ends by decoded
size or by rows: large enough for the kernel, small enough for rotation. So a file ends at the same batch, however the
fetches divided the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.ingest.kafka_log.ingest_clock import IngestClock, batch_times
from archiver.wire.columns import BatchIndex, DecodedBatches, Int64Array

GROUP_BYTES: Final = 8 << 20
GROUP_ROWS: Final = 64 << 10
_ROW_BYTES: Final = 80
"""Bytes of the columns that every record has, besides its key and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGroup:
    """Whole batches in offset order: `records` has the columns of the wire, the other arrays one element per batch.

    `times` (ms) come from the ingest clock. `rows` is the number of records of each batch, `last_offset` its last
    offset.
    """

    records: pa.RecordBatch
    times: Int64Array
    rows: Int64Array
    last_offset: Int64Array

    def part(self, first: int, end: int) -> BatchGroup:
        """The batches from index `first` up to `end`, which is not included."""
        row = int(self.rows[:first].sum())
        rows = self.rows[first:end]
        return BatchGroup(
            records=self.records.slice(row, int(rows.sum())),
            times=self.times[first:end],
            rows=rows,
            last_offset=self.last_offset[first:end],
        )


class Grouper:
    """Turns the decoded pieces of one range, pushed in order, into groups."""

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
        self._waiting = np.empty((3, 0), np.int64)
        self._times = np.empty(0, np.int64)

    def push(self, decoded: DecodedBatches) -> Iterator[BatchGroup]:
        """Take the next piece, and yield the groups that are complete now."""
        if not len(decoded.batches):
            return
        sizes = decoded_sizes(decoded.records, decoded.batches)
        self._pieces.append(decoded.records)
        arrived = np.stack([decoded.batches.rows, sizes, decoded.batches.last_offset])
        self._waiting = np.concatenate([self._waiting, arrived], axis=1)
        times = self._clock.push(batch_times(decoded.batches, self._plan_time_ms), sizes)
        self._times = np.concatenate([self._times, times])
        yield from self._groups(complete=False)

    def finish(self) -> Iterator[BatchGroup]:
        """Yield the remaining groups: the range ends here."""
        self._times = np.concatenate([self._times, self._clock.finish()])
        yield from self._groups(complete=True)

    def _groups(self, *, complete: bool) -> Iterator[BatchGroup]:
        while count := self._next_length(complete=complete):
            rows, _, last_offset = self._waiting[:, :count]
            yield BatchGroup(
                records=self._take(int(rows.sum())), times=self._times[:count], rows=rows, last_offset=last_offset
            )
            self._waiting = self._waiting[:, count:]
            self._times = self._times[count:]

    def _next_length(self, *, complete: bool) -> int:
        """The number of decided batches in the next group; 0 while that group may still grow."""
        decided = len(self._times)
        rows, sizes, _ = self._waiting[:, :decided]
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


def decoded_sizes(records: pa.RecordBatch, batches: BatchIndex) -> Int64Array:
    """The decoded bytes of each batch: its keys and values, and the columns that every record has."""
    bounds = np.append(batches.first_row, records.num_rows)
    sizes = batches.rows * _ROW_BYTES
    for name in ("key", "value"):
        column = records.column(name)
        offsets = np.frombuffer(column.buffers()[1], np.int32)
        sizes += np.diff(offsets[bounds + column.offset].astype(np.int64))
    return sizes
