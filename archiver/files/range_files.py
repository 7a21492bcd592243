"""The files of an open range: one, or one per partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from archiver.files.partitioned_rows import PartitionedRows
from archiver.files.rotation import partition_folder
from archiver.files.row_partitions import RowPartitions
from archiver.files.row_sums import Summed, Sums
from archiver.files.translate import TranslatedRows
from archiver.files.unapproved import WaitingMapping
from archiver.files.written import SpooledFile
from archiver.schemas import EnvelopeReader
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentOrigin, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from catalog.model import file_name, new_id
from catalog.partitioning import Partitioning, PartitionTuple
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """Picklable. `waiting` awaits approval."""

    topic: str
    topic_id: str
    cluster_id: str
    row: RowMapping
    layout: SegmentLayout
    on_parse_error: Literal["pass_through", "halt"]
    on_unrecognized: Literal["warn", "halt", "ignore"] = "warn"
    data_location: str
    partitioning: Partitioning
    target_file_size: int
    objects: ObjectStore
    format: SegmentFormat
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    waiting: WaitingMapping | None = None
    pending_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStart:
    """`time_value` is the time partition (0 without one)."""

    target: FileTarget
    spool: TaskSpool
    partition: int
    start_offset: int
    time_value: int = 0

    def origin(self, end_offset: int, *, files: int = 1, range_id: str = "") -> SegmentOrigin:
        return SegmentOrigin(
            cluster_id=self.target.cluster_id,
            topic=self.target.topic,
            topic_id=self.target.topic_id,
            partition=self.partition,
            start_offset=self.start_offset,
            end_offset=end_offset,
            files=files,
            range_id=range_id,
        )

    def start_file(self, file_id: str) -> tuple[SpoolFile, SegmentWriter, str]:
        target = self.target
        name = DataFileName(
            topic=target.topic,
            ulid=file_id,
            extension=target.format.extension,
            partition=self.partition,
            start_offset=self.start_offset,
        )
        local = self.spool.create(f"{file_id}.{target.format.extension}")
        folder = partition_folder(target.data_location, target.partitioning, self.time_value)
        return local, target.format.start(local, target.layout), f"{folder}/{name}"


class RangeFiles(Protocol):
    id: str

    def write(self, translated: TranslatedRows) -> None:
        """Raise StorageError."""

    def is_full(self, target_bytes: int, room: int) -> bool: ...

    def finish(self, end_offset: int) -> Iterator[SpooledFile]:
        """Finish files as they are taken. `end_offset` is exclusive."""

    def abort(self) -> None: ...


class SingleFile:
    def __init__(self, start: RangeStart, summed: Summed) -> None:
        self.id = new_id()
        self._start = start
        self._summed = summed
        self._sums = Sums()
        self._local, self._writer, self._path = start.start_file(self.id)

    def write(self, translated: TranslatedRows) -> None:
        self._sums += self._summed(translated.rows, translated.records)
        self._writer.write(translated.rows)

    def is_full(self, target_bytes: int, room: int) -> bool:  # noqa: ARG002 - a file is no larger than the room
        return self._writer.size_bytes >= target_bytes

    def finish(self, end_offset: int) -> Iterator[SpooledFile]:
        start = self._start
        info = self._writer.close(
            origin=start.origin(end_offset),
            path=self._path,
            digest=self._sums.digest.text,
            recognition=self._sums.recognition,
            largest_record=self._sums.digest.largest,
        )
        kept_as = f"{start.target.topic}-{start.partition}-{start.start_offset:020d}{self._local.path.suffix}"
        partition = PartitionTuple.of_time(start.time_value, start.target.partitioning.by)
        yield SpooledFile(replace(info, partition=partition), self._local, kept_as)

    def abort(self) -> None:
        self._writer.abort()


class PartitionedFiles:
    def __init__(self, start: RangeStart, partitions: RowPartitions, summed: Summed) -> None:
        self.id = new_id()
        self._start = start
        self._by = partitions.partitioning.by
        self._writer: SegmentWriter | None = None
        self._rows = PartitionedRows(partitions, start.spool, summed, pending_bytes=start.target.pending_bytes)

    def write(self, translated: TranslatedRows) -> None:
        self._rows.add(translated.rows, translated.records, self._start.time_value)

    def is_full(self, target_bytes: int, room: int) -> bool:
        return self._rows.is_full or self._rows.largest_bytes >= target_bytes or self._rows.size_bytes >= room

    def finish(self, end_offset: int) -> Iterator[SpooledFile]:
        start, count = self._start, len(self._rows)
        for number, part in enumerate(self._rows.parts()):
            local, self._writer, path = start.start_file(self.id if number == 0 else new_id())
            for rows in part.rows:
                self._writer.write(rows)
            info = self._writer.close(
                origin=start.origin(end_offset, files=count, range_id=self.id if count > 1 else ""),
                path=path,
                digest=part.sums.digest.text,
                recognition=part.sums.recognition,
                largest_record=part.sums.digest.largest,
                partition=PartitionTuple(self._by, part.values),
            )
            self._writer = None
            yield SpooledFile(info, local, file_name(path))
        self._rows.close()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        self._rows.close()
