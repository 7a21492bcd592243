"""The files of one range while they are written: one, or one for each partition that its rows belong to.

`RangeWriter` decides where a range starts and ends, and hands the finished files over. Nothing here knows offsets of
other ranges, or uploads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from archiver.files.partitioned_rows import PartitionedRows, Sums
from archiver.files.recognition import Recognizer
from archiver.files.rotation import PartitionBy, partition_folder
from archiver.files.row_partitions import RowPartitions
from archiver.schemas import EnvelopeReader
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentOrigin, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, new_id
from catalog.partitioning import Partitioning, PartitionTuple
from catalog.recognition import Recognition
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """How a topic's records become rows, and where their files go. A value that pickles.

    `data_location` is the folder above the partition folders. `topic_id` is text, empty where the cluster gives none.
    `partitioned_by` is kept with each file. `columns` is given where a table is partitioned by more than one time of
    the ingest timestamp; without such a time `partition_by` is None. `pending_bytes` is what may wait in memory for the
    files of their partitions.
    """

    topic: str
    topic_id: str
    cluster_id: str
    row: RowMapping
    layout: SegmentLayout
    on_parse_error: Literal["pass_through", "halt"]
    on_unrecognized: Literal["warn", "halt", "ignore"] = "warn"
    data_location: str
    partition_name: str
    partition_by: PartitionBy | None
    target_file_size: int
    objects: ObjectStore
    format: SegmentFormat
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    partitioned_by: str | None = None
    columns: Partitioning | None = None
    pending_bytes: int = 128 << 20

    def folder(self, partition_value: int) -> str:
        """The folder of a time partition. Values of columns are in no path: catalogs and logs would show them."""
        if self.partition_by is None:
            return self.data_location
        return f"{self.data_location}/{partition_folder(self.partition_name, partition_value, self.partition_by)}"


Finished: TypeAlias = tuple[DataFileInfo, SpoolFile]


@dataclass(frozen=True, slots=True)
class Range:
    """A range of offsets that ends: what its files say about it."""

    partition: int
    start_offset: int
    end_offset: int

    def origin(self, target: FileTarget, *, files: int = 1, range_id: str = "") -> SegmentOrigin:
        """The origin in a file's footer."""
        return SegmentOrigin(
            cluster_id=target.cluster_id,
            topic=target.topic,
            topic_id=target.topic_id,
            partition=self.partition,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            files=files,
            range_id=range_id,
        )


class RangeFiles(Protocol):
    """The files of one range. `id` is the range's. `is_alone` says that there is one file at most."""

    id: str
    is_alone: bool

    def write(
        self, pieces: Sequence[pa.RecordBatch], records: pa.RecordBatch, digest: RecordDigest, recognition: Recognition
    ) -> None:
        """Append rows with the records that they were made from. Raises the leaves of StorageError."""

    def is_full(self, target_bytes: int, room: int) -> bool:
        """Whether a file has its target size, or all of them together fill the room in the spool."""

    def finish(self, of: Range) -> Iterator[Finished]:
        """Write the files to their ends, one at a time."""

    def abort(self) -> None:
        """Drop what isn't finished."""


class OneFile:
    """A range in one file."""

    is_alone = True

    def __init__(self, target: FileTarget, spool: TaskSpool, *, partition: int, start: int, value: int) -> None:
        self.id = new_id()
        self._target = target
        self._value = value
        self._digest = RecordDigest()
        self._recognition = Recognition()
        self._local, self._writer, self._path = _start(
            target, spool, self.id, partition=partition, start=start, value=value
        )

    def write(
        self,
        pieces: Sequence[pa.RecordBatch],
        records: pa.RecordBatch,  # noqa: ARG002 - they are summed already
        digest: RecordDigest,
        recognition: Recognition,
    ) -> None:
        """Append rows."""
        for rows in pieces:
            self._writer.write(rows)
        self._digest += digest
        self._recognition += recognition

    def is_full(self, target_bytes: int, room: int) -> bool:  # noqa: ARG002 - a file is no larger than the room
        """Whether it has its target size."""
        return self._writer.size_bytes >= target_bytes

    def finish(self, of: Range) -> Iterator[Finished]:
        """Write the file to its end."""
        info = self._writer.close(
            origin=of.origin(self._target),
            path=self._path,
            partition_value=self._value,
            digest=self._digest.text,
            recognition=self._recognition,
        )
        yield replace(info, partitioned_by=self._target.partitioned_by), self._local

    def abort(self) -> None:
        """Drop the file."""
        self._writer.abort()


class FilesByPartition:
    """A range in a file for each partition that its rows belong to."""

    is_alone = False

    def __init__(
        self,
        target: FileTarget,
        spool: TaskSpool,
        partitions: RowPartitions,
        recognizer: Recognizer,
        *,
        partition: int,
        value: int,
    ) -> None:
        self.id = new_id()
        self._target = target
        self._spool = spool
        self._value = value
        self._partition = partition
        self._by = partitions.partitioning.by
        self._writer: SegmentWriter | None = None
        self._rows = PartitionedRows(
            partitions, spool, _summed(recognizer, partition), pending_bytes=target.pending_bytes
        )

    def write(
        self,
        pieces: Sequence[pa.RecordBatch],
        records: pa.RecordBatch,
        digest: RecordDigest,  # noqa: ARG002 - each partition has its own
        recognition: Recognition,  # noqa: ARG002
    ) -> None:
        """Append rows."""
        first = 0
        for rows in pieces:
            self._rows.add(rows, records.slice(first, rows.num_rows), self._value)
            first += rows.num_rows

    def is_full(self, target_bytes: int, room: int) -> bool:
        """Whether the largest file has its target size, or all of them take the room, or they are very many."""
        return self._rows.is_full or self._rows.largest_bytes >= target_bytes or self._rows.size_bytes >= room

    def finish(self, of: Range) -> Iterator[Finished]:
        """Write the files, each once the one before was taken."""
        target, count = self._target, len(self._rows)
        for number, part in enumerate(self._rows.parts()):
            file_id = self.id if number == 0 else new_id()
            local, self._writer, path = _start(
                target, self._spool, file_id, partition=self._partition, start=of.start_offset, value=self._value
            )
            for rows in part.rows:
                self._writer.write(rows)
            place = PartitionTuple(self._by, part.values)
            info = self._writer.close(
                origin=of.origin(target, files=count, range_id=self.id if count > 1 else ""),
                path=path,
                partition_value=self._value,
                digest=part.sums.digest.text,
                recognition=part.sums.recognition,
                partition=place,
            )
            self._writer = None
            yield info, local
        self._rows.close()

    def abort(self) -> None:
        """Drop what isn't finished, and all rows that wait."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        self._rows.close()


def _summed(recognizer: Recognizer, partition: int) -> Callable[[pa.RecordBatch, pa.RecordBatch], Sums]:
    def summed(rows: pa.RecordBatch, records: pa.RecordBatch) -> Sums:
        return Sums(RecordDigest.of_fetched(records, partition=partition), recognizer.count(rows, records))

    return summed


def _start(
    target: FileTarget, spool: TaskSpool, file_id: str, *, partition: int, start: int, value: int
) -> tuple[SpoolFile, SegmentWriter, str]:
    name = DataFileName(
        topic=target.topic,
        ulid=file_id,
        extension=target.format.extension,
        partition=partition,
        start_offset=start,
    )
    local = spool.create(f"{file_id}.{target.format.extension}")
    return local, target.format.start(local, target.layout), f"{target.folder(value)}/{name}"
