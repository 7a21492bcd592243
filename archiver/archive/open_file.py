"""Reads one data file: live rows and their records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.assemble import NO_COERCION, Assembler
from archiver.archive.coercion import Coercion
from archiver.archive.deletes import DeleteFiles, Deletes, Mask
from archiver.archive.mappings import KnownMappings
from archiver.archive.offset_order import sorted_by_offset
from archiver.archive.records import AS_CONSUMED, KAFKA_IDS, RecordShape
from archiver.archive.table_files import TableFile
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import Block, RowRange, SegmentFormat, SegmentReader
from schema_mapping import names

_NONE: Final = -1
_NOTHING_DELETED: Final = Deletes(np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStorage:
    """Records wait in the folder `spill`, or the system's temporary folder."""

    deletes: DeleteFiles
    objects: ObjectStore
    formats: SegmentFormats
    mappings: KnownMappings
    coercion: Coercion = NO_COERCION
    spill: Path | None = None

    @classmethod
    def of_store(
        cls,
        objects: ObjectStore,
        formats: SegmentFormats,
        mappings: KnownMappings,
        *,
        coercion: Coercion = NO_COERCION,
        spill: Path | None = None,
    ) -> Self:
        deletes = DeleteFiles(objects, formats)
        return cls(deletes=deletes, objects=objects, formats=formats, mappings=mappings, coercion=coercion, spill=spill)


@dataclass(frozen=True, slots=True)
class OpenFile:
    reader: SegmentReader
    deletes: Deletes
    assembler: Assembler

    @classmethod
    def open(
        cls, storage: TopicStorage, file: TableFile, shape: RecordShape = AS_CONSUMED, *, reads_all: bool = False
    ) -> OpenFile:
        """Raise StorageError and UnknownFormat. `reads_all`: every block will be read."""
        segment_format = storage.formats.named(file.format, file.path)
        deletes = storage.deletes.read(file)
        reader = segment_format.open(storage.objects, file.path, reads_all=reads_all)
        storage.mappings.learn(reader.metadata)
        return cls(reader, deletes, Assembler(file.path, reader.schema, storage.mappings, storage.coercion, shape))

    @classmethod
    def whole(cls, segment_format: SegmentFormat, objects: ObjectStore, path: str, mappings: KnownMappings) -> OpenFile:
        """Open a file outside any table, with all rows. Raises as `open`."""
        reader = segment_format.open(objects, path)
        mappings.learn(reader.metadata)
        return cls(reader, _NOTHING_DELETED, Assembler(path, reader.schema, mappings))

    def close(self) -> None:
        self.reader.close()

    def records(self, block: Block, wanted: RowRange) -> Iterator[pa.RecordBatch]:
        nulls = self.null_columns(block)
        batches = self.reader.read(
            block,
            self.assembler.field_ids | self.deletes.field_ids,
            without=nulls,
            in_dictionaries=self.takes_dictionaries,
            is_stream=self.assembler.shape.is_streamed and _has_begin(block, wanted),
        )
        for rows, kafka in self._rows(batches, block.first_row, wanted, nulls):
            yield sorted_by_offset(self.assembler.records(rows, kafka, nulls))

    def schema_versions(self) -> frozenset[int]:
        if mappings := self.reader.metadata.mappings:
            return frozenset(mappings)
        versions: set[int] = set()
        for block in self.reader.blocks():
            for _, kafka in self.rows(block, None, KAFKA_IDS):
                versions.update(pc.unique(kafka.field(names.SCHEMA_VERSION)).drop_null().to_pylist())
        return frozenset(versions)

    def all_records(self, field_ids: frozenset[int] | None = None) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield live rows with their records. `field_ids` must include the assembler's."""
        for block in self.reader.blocks():
            for rows, kafka in self.rows(block, None, field_ids):
                yield rows, self.assembler.records(rows, kafka)

    @property
    def takes_dictionaries(self) -> bool:
        """Texts in dictionaries can't be compared or shown."""
        return not (self.assembler.shape.shows or self.deletes.equalities)

    def null_columns(self, block: Block) -> frozenset[int]:
        if not self.takes_dictionaries:
            return frozenset()
        return self.reader.null_columns(block, self.assembler.omissible_ids)

    def kafka(self, block: Block, wanted: RowRange) -> Iterator[pa.StructArray]:
        for _, kafka in self.rows(block, wanted, KAFKA_IDS):
            yield kafka

    def rows(
        self, block: Block, wanted: RowRange | None = None, field_ids: frozenset[int] | None = None
    ) -> Iterator[tuple[pa.RecordBatch, pa.StructArray]]:
        """Yield live rows in nonempty batches, with their `kafka`, which `field_ids` must include."""
        columns = None if field_ids is None else field_ids | self.deletes.field_ids
        return self._rows(self.reader.read(block, columns), block.first_row, wanted)

    def _rows(
        self,
        batches: Iterator[pa.RecordBatch],
        first_row: int,
        wanted: RowRange | None,
        nulls: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[pa.RecordBatch, pa.StructArray]]:
        for rows in batches:
            kafka = self.assembler.kafka(rows, nulls)
            kept = self.deletes.survivors(rows, first_row)
            if wanted is not None:
                kept &= _wanted(kafka, wanted)
            first_row += rows.num_rows
            if kept.all():
                yield rows, kafka
            elif kept.any():
                mask = pa.array(kept)
                yield rows.filter(mask), kafka.filter(mask)


def _has_begin(block: Block, wanted: RowRange) -> bool:
    """Later rows wait until they are decoded."""
    return block.is_sorted and block.low_offset is not None and wanted.start_offset <= block.low_offset


def _wanted(kafka: pa.StructArray, wanted: RowRange) -> Mask:
    partitions, offsets = (numbers_or_none(kafka.field(name)) for name in (names.PARTITION, names.OFFSET))
    mask: Mask = (
        (partitions == wanted.partition) & (offsets >= max(0, wanted.start_offset)) & (offsets < wanted.end_offset)
    )
    return mask


def numbers_or_none(column: pa.Array) -> npt.NDArray[np.signedinteger]:
    """Nulls become a number below all offsets and partitions."""
    numbers: npt.NDArray[np.signedinteger] = (pc.fill_null(column, _NONE) if column.null_count else column).to_numpy()
    return numbers
