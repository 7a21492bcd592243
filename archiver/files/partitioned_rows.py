"""The rows of one range by partition, until the range ends: in memory up to a bound, beyond it in a file of the spool.

A table that is partitioned by columns gets a file for each partition of a range. If each were written at once, a range
with hundreds of partitions would need hundreds of row groups in memory. So rows wait here, and files are written one
after the other. Rows of one partition keep the order that they came in.
"""

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
"""How much may wait in memory where the configuration names no bound."""
MOST_FILES: Final = 1_000
"""A range ends after the group of batches with which it has so many partitions."""
_WRITTEN_SHARE: Final = 0.35
"""Bytes of a finished file for each byte of its rows in Arrow, as far as nothing better is known."""


@dataclass(slots=True)
class _Waiting:
    """Sorted rows with their records, and where each partition is in them."""

    rows: pa.RecordBatch
    records: pa.RecordBatch
    starts: dict[Values, tuple[int, int]]


@dataclass(slots=True)
class _Partition:
    """What is known of a partition's rows: their sums without those that wait, and their pieces on disk."""

    sums: Sums = field(default_factory=Sums)
    on_disk: list[int] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """The rows of one partition. `rows` is read once, a piece at a time."""

    values: Values
    sums: Sums
    rows: Iterator[pa.RecordBatch]


class PartitionedRows:
    """Takes the rows of a range in order, and gives them back by partition. Use it for one range."""

    def __init__(
        self, partitions: RowPartitions, spool: TaskSpool, summed: Summed, *, pending_bytes: int = PENDING_BYTES
    ) -> None:
        self._partitions = partitions
        self._spool = spool
        self._summed = summed
        self._pending_bytes = pending_bytes
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._found: dict[Values, _Partition] = {}
        self._disk: _Disk | None = None

    def __len__(self) -> int:
        return len(self._found)

    @property
    def is_full(self) -> bool:
        """Whether the range has so many partitions that it should end."""
        return len(self._found) >= MOST_FILES

    @property
    def largest_bytes(self) -> int:
        """About how large the largest file will be."""
        return int(max((each.size_bytes for each in self._found.values()), default=0) * _WRITTEN_SHARE)

    @property
    def size_bytes(self) -> int:
        """How much room the range takes in the spool at most: what was put aside, and files of everything."""
        every = int(sum(each.size_bytes for each in self._found.values()) * _WRITTEN_SHARE)
        return every + (self._disk.size_bytes if self._disk else 0)

    def add(self, rows: pa.RecordBatch, records: pa.RecordBatch, ingest_value: int | None) -> None:
        """Take rows with the records that they were made from. Raises StorageError if the spool refuses them.

        `ingest_value` is that of `RowPartitions.sort`.
        """
        found = self._partitions.sort(rows, ingest_value)
        if found.order is not None:
            order = pa.array(found.order)
            rows, records = rows.take(order), records.take(order)
        size = rows.nbytes + records.nbytes
        starts: dict[Values, tuple[int, int]] = {}
        for values, start, end in zip(found.values, found.starts[:-1].tolist(), found.starts[1:].tolist(), strict=True):
            starts[values] = (start, end)
            known = self._found.setdefault(values, _Partition())
            known.size_bytes += rows.nbytes * (end - start) // rows.num_rows
        self._waiting.append(_Waiting(rows, records, starts))
        self._waiting_bytes += size
        if self._waiting_bytes >= self._pending_bytes:
            self._put_aside()

    def parts(self) -> Iterator[PartitionRows]:
        """The partitions and their rows, in the order in which they came. Take all rows of one before the next."""
        for values, known in self._found.items():
            waiting = self._of(values)
            sums = known.sums + self._sum(waiting)
            yield PartitionRows(values, sums, self._rows(known, [rows for rows, _ in waiting]))

    def close(self) -> None:
        """Drop all rows, and the file in the spool."""
        self._waiting, self._waiting_bytes, self._found = [], 0, {}
        if self._disk is not None:
            self._disk.remove()
            self._disk = None

    def _rows(self, known: _Partition, waiting: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in known.on_disk:
            assert self._disk is not None
            yield self._disk.read(place)
        yield from waiting

    def _of(self, values: Values) -> list[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The rows of a partition that wait in memory, with their records."""
        spans = ((each, each.starts[values]) for each in self._waiting if values in each.starts)
        return [
            (each.rows.slice(start, end - start), each.records.slice(start, end - start))
            for each, (start, end) in spans
        ]

    def _sum(self, waiting: Sequence[tuple[pa.RecordBatch, pa.RecordBatch]]) -> Sums:
        return sum((self._summed(rows, records) for rows, records in waiting), Sums())

    def _put_aside(self) -> None:
        """Move all rows from memory to the spool, a piece for each partition."""
        for values, known in self._found.items():
            waiting = self._of(values)
            if not waiting:
                continue
            known.sums += self._sum(waiting)
            if self._disk is None:
                self._disk = _Disk(self._spool.create(f"{new_id()}.arrow"), waiting[0][0].schema)
            # Not put together before: text of one partition may exceed what one Arrow array can hold.
            known.on_disk += [self._disk.write(rows) for rows, _ in waiting]
        self._waiting, self._waiting_bytes = [], 0


class _Disk:
    """A file of the spool with batches of rows, which are read back one by one in any order."""

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
        """Append rows; return their place."""
        try:
            self._writer.write_batch(rows)
        except (OSError, pa.ArrowException) as error:
            raise spool_error(error, self._file.path) from error
        self._written += 1
        return self._written - 1

    def read(self, place: int) -> pa.RecordBatch:
        """Read the rows at a place. Nothing can be written any more."""
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
