"""The new files of a stretch of offsets: one, or one per table partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.errors import UpkeepError
from archiver.files.partitioned_rows import PartitionedRows, PartitionRows
from archiver.files.rotation import partition_folder
from archiver.files.row_partitions import RowPartitions, Values
from archiver.files.row_sums import Sums
from archiver.rewrite.rewritten_file import RewrittenFile
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool import TaskSpool
from archiver.upkeep.compact.borders import KeptSpan, is_one_range
from archiver.upkeep.compact.source_rows import SourceRows
from archiver.upkeep.compact.target import CompactTarget, NewPlaces
from archiver.wire.record_digest import RecordDigest
from catalog.model import new_id
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition


class OpenFiles(Protocol):
    def write(self, rows: pa.RecordBatch) -> None:
        """Raise StorageError."""

    def is_full(self) -> bool: ...

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[RewrittenFile]:
        """Finish the files lazily, as they are taken."""

    def abort(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    target: CompactTarget
    spool: TaskSpool
    layout: SegmentLayout
    assembler: Assembler
    sources: Sequence[SourceRows]
    partition: int

    def start(self, file_id: str | None = None) -> RewrittenFile:
        files = self.target.files
        return RewrittenFile(files, self.spool, self.layout, form=files.formats.densest, file_id=file_id)

    def origin(self, spans: Sequence[KeptSpan], *, files: int = 1, range_id: str = "") -> SegmentOrigin | None:
        """Return None if the files lack records of the range, or have several ranges."""
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

    def records(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return self.assembler.records(rows, self.assembler.kafka(rows))


class OneFile:
    """With `is_alone` it has all rows of the old files, and their digest."""

    def __init__(self, making: Making, *, is_alone: bool) -> None:
        self._making = making
        self._is_alone = is_alone
        self._file = making.start()

    def write(self, rows: pa.RecordBatch) -> None:
        self._file.write(rows, None if self._is_alone else self._making.records(rows))

    def is_full(self) -> bool:
        return not self._is_alone and self._file.size_bytes >= self._making.target.target_bytes

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[RewrittenFile]:
        sources, old = self._making.sources, self._making.sources[0].source.file
        self._file.close(
            old.path.rpartition("/")[0],
            (self._making.partition, spans[0].start),
            origin=self._making.origin(spans),
            digest=sum((source.digest for source in sources), RecordDigest()) if self._is_alone else None,
            recognition=_recognition(sources) if self._is_alone else None,
            partition=next(
                (values for source in sources if (values := source.reader.metadata.place)), old.time_partition
            ),
        )
        yield self._file

    def abort(self) -> None:
        self._file.abort()


class FilesByPartition:
    """Files are written one at a time; other rows are buffered."""

    def __init__(self, making: Making, places: NewPlaces) -> None:
        self._making = making
        self._places = places
        self._file: RewrittenFile | None = None
        self._rows = PartitionedRows(
            RowPartitions(places.partitioning, making.layout.schema),
            making.spool,
            lambda _, records: Sums(RecordDigest.of_seen(records)),
            pending_bytes=making.target.files.pending_bytes,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        self._rows.add(rows, self._making.records(rows), None)

    def is_full(self) -> bool:
        rows, target = self._rows, self._making.target
        return rows.is_full or rows.largest_bytes >= target.target_bytes or rows.size_bytes >= self._places.room

    def finish(self, spans: Sequence[KeptSpan]) -> Iterator[RewrittenFile]:
        count, range_id = len(self._rows), new_id()
        origin = self._making.origin(spans, files=count, range_id=range_id if count > 1 else "")
        for number, part in enumerate(self._rows.parts()):
            yield self._finished(part, range_id if number == 0 else new_id(), origin, spans[0].start)
        self._rows.close()

    def _finished(
        self, part: PartitionRows, file_id: str, origin: SegmentOrigin | None, start_offset: int
    ) -> RewrittenFile:
        places, partitioning = self._places, self._places.partitioning
        partition = PartitionTuple(partitioning.by, part.values)
        self._check_time(part.values)
        self._file = file = self._making.start(file_id)
        for rows in part.rows:
            file.write(rows)
        file.close(
            partition_folder(places.data_location, partitioning, partition.time_value),
            (self._making.partition, start_offset),
            origin=origin,
            digest=part.sums.digest,
            partition=UNPLACED if partition.is_time_alone else partition,
        )
        file.info = replace(file.info, partition=partition)
        self._file = None
        return file

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
            self._file = None
        self._rows.close()

    def _check_time(self, values: Values) -> None:
        partitioning = self._places.partitioning
        if partitioning.time is not None and values[partitioning.columns.index(partitioning.time)] is None:
            raise UpkeepError(
                "rows have no ingest timestamp, so they fit into no partition of the table: another engine wrote"
                " them. The files stay as they are; nothing is lost by that. `archiver verify` says whether they have"
                " archived records",
                files=[source.source.file.path for source in self._making.sources],
            )


def _recognition(sources: Sequence[SourceRows]) -> Recognition | None:
    recognitions = [source.reader.metadata.recognition for source in sources if source.is_proven]
    counted = [recognition for recognition in recognitions if recognition is not None]
    return sum(counted, Recognition()) if len(counted) == len(sources) else None
