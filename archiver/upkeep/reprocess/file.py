"""The task of `archiver reprocess`, with one row group in memory.

A file is uploaded only if its records have the old file's digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.archive.table_files import TableFile
from archiver.errors import UpkeepError
from archiver.files.partitioned_rows import PartitionedRows, PartitionRows
from archiver.files.recognition import Recognizer
from archiver.files.row_partitions import RowPartitions
from archiver.files.row_sums import summed_by
from archiver.rewrite.rewritten_file import RewrittenFile, check_footer
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import Block, SegmentOrigin
from archiver.storage.spool import TaskSpool
from archiver.upkeep.reprocess.poor_rows import ErrorKind, Survey, survey
from archiver.upkeep.reprocess.redecode import Decoding, RedecodedRows, Redecoder
from archiver.upkeep.reprocess.row_filter import RowFilter
from archiver.upkeep.wide_schema import wide_schema
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo
from catalog.partitioning import Partitioning, PartitionTuple
from catalog.ranges.rewrite import NewFile, RecordSpan, RewriteGroup
from catalog.recognition import Recognition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessTask:
    """`partitioning` is set if its columns may be decoded again."""

    target: RewriteTarget
    decoding: Decoding
    file: TableFile
    wanted: RowFilter
    dry_run: bool = False
    partitioning: Partitioning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprocessedFile:
    """`mended` rows are no longer poor. `rewritten` is None if nothing was written."""

    path: str
    rows: int
    found: Counter[ErrorKind] = field(default_factory=Counter)
    mended: Counter[ErrorKind] = field(default_factory=Counter)
    rewritten: RewriteGroup | None = None


def reprocess_file(task: ReprocessTask) -> ReprocessedFile:
    """Raise UpkeepError, ReplayError and StorageError, with the file's path."""
    target = task.target
    storage = target.storage()
    with closing(OpenFile.open(storage, task.file)) as file:
        seen = survey(file, task.wanted, task.decoding.row)
        result = ReprocessedFile(path=task.file.path, rows=task.file.rows, found=seen.found)
        if not seen.blocks:
            return result
        rewriting = _Rewriting(task, file, seen, storage.mappings)
        mended = rewriting.trial(seen.blocks, whole=task.dry_run)
        if task.dry_run or not mended:
            return ReprocessedFile(path=result.path, rows=result.rows, found=seen.found, mended=mended)
        with TaskSpool(target.spool) as spool:
            return rewriting.run(spool)


class _Rewriting:
    def __init__(self, task: ReprocessTask, file: OpenFile, seen: Survey, mappings: KnownMappings) -> None:
        self._task = task
        self._target = task.target
        self._file = file
        self._seen = seen
        self._mappings = mappings
        row = task.decoding.row
        self._schema = wide_schema(row.arrow_schema, file.reader.schema, task.target.column_names)
        self._redecoder = Redecoder(task.decoding, task.wanted, file=file.reader.schema, schema=self._schema)

    def trial(self, blocks: list[Block], *, whole: bool) -> Counter[ErrorKind]:
        mended: Counter[ErrorKind] = Counter()
        for block in blocks:
            for piece, _ in self._pieces(block):
                mended += piece.mended
                if mended and not whole:
                    return mended
        return mended

    def run(self, spool: TaskSpool) -> ReprocessedFile:
        if self._task.partitioning is not None:
            return self._split(spool, self._task.partitioning)
        old, mended, recognition = self._task.file, Counter[ErrorKind](), Recognition()
        with self._started(spool) as new:
            for block in self._file.reader.blocks():
                for piece, records in self._pieces(block):
                    new.write(piece.rows, records)
                    mended += piece.mended
                    recognition += piece.recognition
            self._check_original(new.digest)
            self._close(new, origin=self._file.reader.metadata.origin, recognition=recognition)
        info = self._uploaded(new)
        return ReprocessedFile(
            path=old.path,
            rows=info.rows,
            found=self._seen.found,
            mended=mended,
            rewritten=RewriteGroup.of_file(old.path, info, is_sorted=info.is_sorted),
        )

    def _started(self, spool: TaskSpool) -> RewrittenFile:
        row = self._task.decoding.row
        texts = {version: self._mappings.row_mapping(version).text for version in self._file.schema_versions()}
        layout = self._target.layout(self._schema, row.schema_version, texts | {row.schema_version: row.text})
        return RewrittenFile(self._target, spool, layout)

    def _close(
        self,
        new: RewrittenFile,
        *,
        origin: SegmentOrigin | None,
        recognition: Recognition | None,
        digest: RecordDigest | None = None,
        partition: PartitionTuple | None = None,
    ) -> None:
        new.close(
            self._task.file.path.rpartition("/")[0],
            self._file.reader.metadata.origin,
            origin=origin,
            digest=digest,
            recognition=recognition,
            partition=partition or self._task.file.time_partition,
        )

    def _uploaded(self, new: RewrittenFile) -> DataFileInfo:
        new.check(self._task.file.path)
        return new.upload()

    def _split(self, spool: TaskSpool, partitioning: Partitioning) -> ReprocessedFile:
        target, old, origin = self._target, self._task.file, self._file.reader.metadata.origin
        summed = summed_by(Recognizer(self._task.decoding.row, self._schema))
        partitions = RowPartitions(partitioning, self._schema)
        with closing(PartitionedRows(partitions, spool, summed, pending_bytes=target.pending_bytes)) as rows:
            mended: Counter[ErrorKind] = Counter()
            digest = RecordDigest()
            for block in self._file.reader.blocks():
                for piece, records in self._pieces(block):
                    rows.add(piece.rows, records, _ingest_value(old, partitioning))
                    mended += piece.mended
                    digest += RecordDigest.of_seen(records)
            self._check_original(digest)
            if len(rows) > 1 and (origin is None or old.has_deletes):
                raise UpkeepError(
                    "rows of the file go to other partitions now, and it holds several ranges, or others deleted rows "
                    "of it: run `archiver compact` for the topic first, then this again",
                    file=old.path,
                    partitions=len(rows),
                )
            new = [self._write_part(spool, part, partitioning, is_alone=len(rows) == 1) for part in rows.parts()]
        if len(new) == 1:
            group = RewriteGroup.of_file(old.path, new[0], is_sorted=new[0].is_sorted)
        else:
            assert origin is not None
            group = RewriteGroup(
                paths=(old.path,),
                files=tuple(NewFile(file=info, spans=(_span(origin, info),), is_sorted=info.is_sorted) for info in new),
            )
        return ReprocessedFile(
            path=old.path,
            rows=sum(info.rows for info in new),
            found=self._seen.found,
            mended=mended,
            rewritten=group,
        )

    def _write_part(
        self, spool: TaskSpool, part: PartitionRows, partitioning: Partitioning, *, is_alone: bool
    ) -> DataFileInfo:
        """The footer names a range only if the file `is_alone`."""
        with self._started(spool) as new:
            for rows in part.rows:
                new.write(rows)
            self._close(
                new,
                origin=self._file.reader.metadata.origin if is_alone else None,
                recognition=part.sums.recognition,
                digest=part.sums.digest,
                partition=PartitionTuple(partitioning.by, part.values),
            )
        return self._uploaded(new)

    def _pieces(self, block: Block) -> Iterator[tuple[RedecodedRows, pa.RecordBatch]]:
        for rows, kafka in self._file.rows(block):
            records = self._file.assembler.records(rows, kafka)
            first = 0
            for piece in self._redecoder.pieces(rows, kafka, records):
                yield piece, records.slice(first, piece.rows.num_rows)
                first += piece.rows.num_rows

    def _check_original(self, found: RecordDigest) -> None:
        if not self._task.file.has_deletes:
            check_footer(self._task.file.path, self._file.reader.metadata.digest, found)


def _ingest_value(file: TableFile, partitioning: Partitioning) -> int:
    if partitioning.time is None:
        return 0
    value = file.partition_values[partitioning.columns.index(partitioning.time)]
    assert isinstance(value, int)
    return value


def _span(origin: SegmentOrigin, info: DataFileInfo) -> RecordSpan:
    return RecordSpan(
        partition=origin.partition,
        start_offset=origin.start_offset,
        end_offset=origin.end_offset,
        rows=info.rows,
        digest=info.digest,
    )
