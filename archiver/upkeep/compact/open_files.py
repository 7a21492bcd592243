"""The new files of offsets that follow each other, while they are written: one, or one for each table partition.

`NewFiles` decides where such offsets start and end. Nothing here uploads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from struct import unpack
from typing import Protocol, TypeAlias

import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.errors import UpkeepError
from archiver.files.partitioned_rows import PartitionedRows, PartitionRows, Sums
from archiver.files.row_partitions import RowPartitions, Values
from archiver.storage.file_names import DataFileName
from archiver.storage.segment import SegmentLayout, SegmentOrigin, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.compact.borders import KeptSpan, is_one_range
from archiver.upkeep.compact.source_rows import SourceRows
from archiver.upkeep.compact.target import CompactTarget, NewPlaces
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, new_id
from catalog.partitioning import PartitionTuple
from catalog.recognition import Recognition

Finished: TypeAlias = tuple[DataFileInfo, SpoolFile]


class OpenFiles(Protocol):
    """Files that are being written."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows. Raises the leaves of StorageError."""

    def is_full(self) -> bool:
        """Whether a file has its target size, or all of them take the room in the spool."""

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[Finished]:
        """Write the files to their ends, each once the one before was taken. Together they have all rows of `spans`."""

    def abort(self) -> None:
        """Drop what isn't finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What the new files of one Kafka partition have in common. `sources` are the old files."""

    target: CompactTarget
    spool: TaskSpool
    layout: SegmentLayout
    assembler: Assembler
    sources: Sequence[SourceRows]
    partition: int

    def start(self, file_id: str) -> tuple[SpoolFile, SegmentWriter]:
        """Start a file in the spool."""
        form = self.target.formats.densest
        local = self.spool.create(f"{file_id}.{form.extension}")
        return local, form.start(local, self.layout)

    def path(self, folder: str, file_id: str, start_offset: int) -> str:
        """Where a file goes."""
        name = DataFileName(
            topic=self.target.topic,
            ulid=file_id,
            extension=self.target.formats.densest.extension,
            partition=self.partition,
            start_offset=start_offset,
        )
        return f"{folder}/{name}"

    def origin(self, spans: Sequence[KeptSpan], *, files: int = 1, range_id: str = "") -> SegmentOrigin | None:
        """The range that footers name. None where the files lack records of it, or have several ranges."""
        origin = self.sources[0].reader.metadata.origin
        if origin is None or not is_one_range(spans):
            return None
        return SegmentOrigin(
            cluster_id=origin.cluster_id,
            topic=origin.topic,
            topic_id=origin.topic_id,
            partition=self.partition,
            start_offset=spans[0].start,
            end_offset=spans[0].end,
            files=files,
            range_id=range_id,
        )

    def digest(self, rows: pa.RecordBatch) -> RecordDigest:
        """The digest of the records of rows."""
        return RecordDigest.of_seen(self.records(rows))

    def records(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The records of rows."""
        return self.assembler.records(rows, self.assembler.kafka(rows))


class OneFile:
    """All rows in one file, in the table partition of the old files.

    With `is_alone` it has all rows of these: the digest is theirs. Else it is computed.
    """

    def __init__(self, making: Making, *, is_alone: bool) -> None:
        self._making = making
        self._is_alone = is_alone
        self._id = new_id()
        self._digest = RecordDigest()
        self._local, self._writer = making.start(self._id)

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if not self._is_alone:
            self._digest += self._making.digest(rows)
        self._writer.write(rows)

    def is_full(self) -> bool:
        """Whether it has its target size and may end."""
        return not self._is_alone and self._writer.size_bytes >= self._making.target.target_bytes

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[Finished]:
        """Write the file to its end."""
        sources = self._making.sources
        folder = sources[0].source.file.path.rpartition("/")[0]
        digest = sum((each.digest for each in sources), RecordDigest()) if self._is_alone else self._digest
        info = self._writer.close(
            origin=self._making.origin(spans),
            path=self._making.path(folder, self._id, spans[0].start),
            partition_value=_time_value(sources[0].source.file.partition_values),
            digest=digest.text,
            recognition=_recognition(sources) if self._is_alone else None,
            partition=next((place for each in sources if (place := each.reader.metadata.place)), None),
        )
        yield info, self._local

    def abort(self) -> None:
        """Drop the file."""
        self._writer.abort()


class FilesByPartition:
    """A file for each table partition that the rows belong to by another spec than the old files'.

    Rows wait in memory and in the spool, and one file is written at a time, whatever the number of partitions.
    """

    def __init__(self, making: Making, places: NewPlaces) -> None:
        self._making = making
        self._places = places
        self._writer: SegmentWriter | None = None
        self._rows = PartitionedRows(
            RowPartitions(places.partitioning, making.layout.schema),
            making.spool,
            lambda _, records: Sums(RecordDigest.of_seen(records)),
            pending_bytes=places.pending_bytes,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        self._rows.add(rows, self._making.records(rows), None)

    def is_full(self) -> bool:
        """Whether the largest file has its target size, or all of them take the room, or they are very many."""
        rows, target = self._rows, self._making.target
        return rows.is_full or rows.largest_bytes >= target.target_bytes or rows.size_bytes >= self._places.room

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[Finished]:
        """Write the files, each once the one before was taken."""
        count, range_id = len(self._rows), new_id()
        origin = self._making.origin(spans, files=count, range_id=range_id if count > 1 else "")
        for number, part in enumerate(self._rows.parts()):
            yield self._finished(part, range_id if number == 0 else new_id(), origin, spans[0].start)
        self._rows.close()

    def _finished(self, part: PartitionRows, file_id: str, origin: SegmentOrigin | None, start_offset: int) -> Finished:
        places = self._places
        time = self._time(part.values)
        local, self._writer = self._making.start(file_id)
        for rows in part.rows:
            self._writer.write(rows)
        info = self._writer.close(
            origin=origin,
            path=self._making.path(places.folder(time), file_id, start_offset),
            partition_value=time or 0,
            digest=part.sums.digest.text,
            partition=None if places.partitioning.is_time_alone else PartitionTuple(places.by, part.values),
        )
        self._writer = None
        return replace(info, partitioned_by=places.by), local

    def abort(self) -> None:
        """Drop what isn't finished, and all rows that wait."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        self._rows.close()

    def _time(self, values: Values) -> int | None:
        """The value of the ingest timestamp's partition. None where the table has no such partition."""
        partitioning = self._places.partitioning
        if partitioning.time is None:
            return None
        value = values[partitioning.columns.index(partitioning.time)]
        if value is None:
            raise UpkeepError(
                "rows have no ingest timestamp, so they fit into no partition of the table: another engine wrote"
                " them. The files stay as they are; nothing is lost by that. `archiver verify` says whether they have"
                " archived records",
                files=[each.source.file.path for each in self._making.sources],
            )
        return int(unpack("<i", value)[0])


def _time_value(values: Sequence[object]) -> int:
    """The time partition, as the file's description wants one. The manifest takes the old files' whole partition."""
    return next((each for each in values if isinstance(each, int)), 0)


def _recognition(sources: Sequence[SourceRows]) -> Recognition | None:
    known = [each.reader.metadata.recognition for each in sources if each.is_proven]
    counted = [each for each in known if each is not None]
    return sum(counted, Recognition()) if len(counted) == len(sources) else None
