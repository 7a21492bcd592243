"""One range's rows by partition, in memory up to a bound, then in the spool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import pyarrow as pa

from archiver.files.row_partitions import RowPartitions, Values
from archiver.files.row_sums import Summed, Sums
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile, spool_error
from catalog.model import new_id

PENDING_BYTES: Final = 128 << 20
"""The default bound of buffered rows in memory."""
MOST_FILES: Final = 1_000
"""A range with this many partitions ends after the current group of batches."""
_WRITTEN_SHARE: Final = 0.35
"""Bytes of a finished file for each byte of its rows in Arrow: the estimate before the first file."""


@dataclass(slots=True)
class _SortedRows:
    rows: pa.RecordBatch
    records: pa.RecordBatch
    starts: dict[Values, tuple[int, int]]


@dataclass(slots=True)
class _PendingPartition:
    sums: Sums = field(default_factory=Sums)
    on_disk: list[int] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """`rows` can be read once."""

    values: Values
    sums: Sums
    rows: Iterator[pa.RecordBatch]


class PartitionedRows:
    def __init__(
        self, partitions: RowPartitions, spool: TaskSpool, summed: Summed, *, pending_bytes: int = PENDING_BYTES
    ) -> None:
        self._partitions = partitions
        self._spool = spool
        self._summed = summed
        self._pending_bytes = pending_bytes
        self._waiting: list[_SortedRows] = []
        self._waiting_bytes = 0
        self._found: dict[Values, _PendingPartition] = {}
        self._disk: _Disk | None = None

    def __len__(self) -> int:
        return len(self._found)

    @property
    def is_full(self) -> bool:
        return len(self._found) >= MOST_FILES

    @property
    def largest_bytes(self) -> int:
        return int(max((partition.size_bytes for partition in self._found.values()), default=0) * _WRITTEN_SHARE)

    @property
    def size_bytes(self) -> int:
        """An upper bound of bytes in the spool."""
        every = int(sum(partition.size_bytes for partition in self._found.values()) * _WRITTEN_SHARE)
        return every + (self._disk.size_bytes if self._disk else 0)

    def add(self, rows: pa.RecordBatch, records: pa.RecordBatch, ingest_value: int | None) -> None:
        """Raise StorageError if the spool refuses the rows."""
        ordered = self._partitions.sort(rows, ingest_value)
        if ordered.order is not None:
            order = pa.array(ordered.order)
            rows, records = rows.take(order), records.take(order)
        size = rows.nbytes + records.nbytes
        starts: dict[Values, tuple[int, int]] = {}
        for values, start, end in zip(
            ordered.values, ordered.starts[:-1].tolist(), ordered.starts[1:].tolist(), strict=True
        ):
            starts[values] = (start, end)
            partition = self._found.setdefault(values, _PendingPartition())
            partition.size_bytes += rows.nbytes * (end - start) // rows.num_rows
        self._waiting.append(_SortedRows(rows, records, starts))
        self._waiting_bytes += size
        if self._waiting_bytes >= self._pending_bytes:
            self._put_aside()

    def parts(self) -> Iterator[PartitionRows]:
        """Take all rows of a partition before the next."""
        for values, partition in self._found.items():
            waiting = self._of(values)
            sums = partition.sums + self._sum(waiting)
            yield PartitionRows(values, sums, self._rows(partition, [rows for rows, _ in waiting]))

    def close(self) -> None:
        self._waiting, self._waiting_bytes, self._found = [], 0, {}
        if self._disk is not None:
            self._disk.remove()
            self._disk = None

    def _rows(self, known: _PendingPartition, waiting: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for position in known.on_disk:
            assert self._disk is not None
            yield self._disk.read(position)
        yield from waiting

    def _of(self, values: Values) -> list[tuple[pa.RecordBatch, pa.RecordBatch]]:
        spans = ((waiting, waiting.starts[values]) for waiting in self._waiting if values in waiting.starts)
        return [
            (waiting.rows.slice(start, end - start), waiting.records.slice(start, end - start))
            for waiting, (start, end) in spans
        ]

    def _sum(self, waiting: Sequence[tuple[pa.RecordBatch, pa.RecordBatch]]) -> Sums:
        return sum((self._summed(rows, records) for rows, records in waiting), Sums())

    def _put_aside(self) -> None:
        for values, partition in self._found.items():
            waiting = self._of(values)
            if not waiting:
                continue
            partition.sums += self._sum(waiting)
            if self._disk is None:
                self._disk = _Disk(self._spool.create(f"{new_id()}.arrow"), waiting[0][0].schema)
            # Not concatenated before: text of one partition may exceed what one Arrow array can hold.
            partition.on_disk += [self._disk.write(rows) for rows, _ in waiting]
        self._waiting, self._waiting_bytes = [], 0


class _Disk:
    def __init__(self, file: SpoolFile, schema: pa.Schema) -> None:
        self._file = file
        self._sink = file.sink()
        self._writer = pa.ipc.new_file(self._sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        self._stream: BinaryIO | None = None
        self._reader: pa.ipc.RecordBatchFileReader | None = None
        self._written = 0

    @property
    def size_bytes(self) -> int:
        return self._file.size

    def write(self, rows: pa.RecordBatch) -> int:
        try:
            self._writer.write_batch(rows)
        except (OSError, pa.ArrowException) as error:
            raise spool_error(error, self._file.path) from error
        self._written += 1
        return self._written - 1

    def read(self, place: int) -> pa.RecordBatch:
        try:
            if self._reader is None:
                self._writer.close()
                self._sink.close()
                self._stream = self._file.reader()
                self._reader = pa.ipc.open_file(self._stream)
            return self._reader.get_batch(place)
        except (OSError, pa.ArrowException) as error:
            raise spool_error(error, self._file.path) from error

    def remove(self) -> None:
        if self._stream is not None:
            self._stream.close()
        else:
            with suppress(OSError, pa.ArrowException):  # the file can be dropped even if the disk is full
                self._writer.close()
            with suppress(OSError):
                self._sink.close()
        self._file.remove()
