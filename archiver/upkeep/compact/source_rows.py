"""The rows of an old file in the new columns, without decoding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.deletes import Mask
from archiver.archive.offset_order import sorted_by_offset
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.projection import compile_projection
from archiver.errors import UpkeepError
from archiver.rewrite.rewritten_file import check_footer
from archiver.storage.segment import Block, RowRange, SegmentReader
from archiver.upkeep.compact.choice import SourceFile
from archiver.wire.record_digest import RecordDigest
from schema_mapping import names

Offsets = npt.NDArray[np.int64]

PARTITION: Final = "partition"
OFFSET: Final = "offset"
ROW: Final = "row"


class SourceRows:
    """An open file's live rows as batches of PARTITION, OFFSET and ROW."""

    def __init__(self, file: OpenFile, source: SourceFile, schema: pa.Schema) -> None:
        """`schema` has the columns of ROW. Raises ReplayError if they can't hold the file's."""
        self.source = source
        self._file = file
        self._kind = pa.struct(list(schema))
        self._project = compile_projection(pa.struct(list(file.reader.schema)), self._kind, source.file.path)
        self._removed: dict[int, list[Offsets]] = defaultdict(list)
        about = file.reader.metadata
        self._footer = about.digest if about.rows == source.file.rows else None
        self._whole = RecordDigest()
        self._kept = RecordDigest()
        self.read_rows = 0

    @property
    def reader(self) -> SegmentReader:
        return self._file.reader

    @property
    def is_proven(self) -> bool:
        return self._footer is not None and not self.source.has_deletes

    @property
    def digest(self) -> RecordDigest:
        """The footer's, or with deletes of the rows read. Valid after all were read."""
        if not self._footer or not self.is_proven:
            return self._kept
        return RecordDigest(total=int(self._footer, 16), largest=self._file.reader.metadata.largest_record)

    def removed(self, partition: int) -> Offsets:
        """Return deleted offsets of the part of the file that was read."""
        offsets = self._removed.get(partition)
        return np.concatenate(offsets) if offsets else np.empty(0, np.int64)

    @property
    def removed_partitions(self) -> frozenset[int]:
        return frozenset(self._removed)

    def check(self) -> None:
        """Raise UpkeepError unless all rows were read and match the footer's digest."""
        if self.read_rows != self.source.file.rows:
            raise UpkeepError(
                "the file doesn't have the rows that the table's manifest says; it stays as it is. Compare it with a"
                " backup",
                file=self.source.file.path,
                manifest=self.source.file.rows,
                found=self.read_rows,
            )
        if not self.is_proven:
            check_footer(self.source.file.path, self._footer, self._whole)

    def records(self, block: Block, wanted: RowRange) -> Iterator[pa.RecordBatch]:
        """Sorted by offset. Raises UpkeepError for a row of another partition than `wanted`."""
        for batch in self.rows(block):
            if pc.any(pc.not_equal(batch.column(PARTITION), wanted.partition)).as_py():
                raise UpkeepError(
                    "the file has rows of other partitions than the table's manifest says; it stays as it is",
                    file=self.source.file.path,
                    partition=wanted.partition,
                )
            yield sorted_by_offset(batch)

    def rows(self, block: Block) -> Iterator[pa.RecordBatch]:
        """No batch is empty. Rows are of any partition."""
        first_row = block.first_row
        for rows in self.reader.read(block):
            batch = self._placed(rows)
            kept = self._file.deletes.survivors(rows, first_row)
            first_row += rows.num_rows
            self.read_rows += rows.num_rows
            if not self.is_proven:
                self._digest(rows, kept)
            if not kept.all():
                self._note_removed(batch.filter(pa.array(~kept)))
                batch = batch.filter(pa.array(kept))
            if batch.num_rows:
                yield batch

    def close(self) -> None:
        self._file.close()

    def _placed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        kafka = self._file.assembler.kafka(rows)
        partition, offset = kafka.field(names.PARTITION), kafka.field(names.OFFSET)
        if kafka.null_count or partition.null_count or offset.null_count:
            raise UpkeepError(
                "the file has rows without a partition and an offset: another engine wrote them. It stays as"
                " it is. `archiver verify` says whether archived records are missing",
                file=self.source.file.path,
            )
        struct = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
        return pa.RecordBatch.from_arrays([partition, offset, self._project(struct)], [PARTITION, OFFSET, ROW])

    def _digest(self, rows: pa.RecordBatch, kept: Mask) -> None:
        records = self._file.assembler.records(rows, self._file.assembler.kafka(rows))
        whole = RecordDigest.of_seen(records)
        self._whole += whole
        self._kept += whole if kept.all() else RecordDigest.of_seen(records.filter(pa.array(kept)))

    def _note_removed(self, gone: pa.RecordBatch) -> None:
        partitions, offsets = gone.column(PARTITION).to_numpy(), gone.column(OFFSET).to_numpy()
        for partition in np.unique(partitions).tolist():
            self._removed[partition].append(offsets[partitions == partition])


def check_digest(storage: TopicStorage, source: SourceFile) -> None:
    """Raise UpkeepError if the records don't have the digest in the footer."""
    with closing(OpenFile.open(storage, source.file)) as opened:
        expected = opened.reader.metadata.digest
        if expected is None:
            return
        digest = RecordDigest()
        for block in opened.reader.blocks():
            for rows in opened.reader.read(block, opened.assembler.field_ids):
                digest += RecordDigest.of_seen(opened.assembler.records(rows, opened.assembler.kafka(rows)))
    check_footer(source.file.path, expected, digest)
