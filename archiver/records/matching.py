"""Reads the selected records of an archive: rows that can't match are left out before values are encoded or decoded.

Conditions on columns are evaluated on the table's rows. Blocks whose statistics prove that no row matches aren't read,
and of the remaining blocks only the columns of the condition, until a row may match.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.offset_order import offsets_of, sorted_by_offset
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.partition_scan import open_records
from archiver.archive.records import AS_CONSUMED, KAFKA_IDS, RecordShape
from archiver.archive.table_files import TableFile
from archiver.archive.topic_archive import TopicArchive
from archiver.records.column_answers import answer, is_absent
from archiver.records.selection import Selection
from archiver.records.table_columns import TableColumn, table_columns
from archiver.records.where import Answer, Answers, Where
from archiver.records.where_syntax import ColumnIs
from archiver.storage.segment import Block, RowRange, SegmentReader
from schema_mapping.columns.fixed import KEY_ID, SCHEMA_VERSION_ID

_NO = np.zeros(1, np.bool_)
_YES = np.ones(1, np.bool_)


@dataclass(slots=True)
class UnjudgedRecords:
    """Counts the records that the condition's columns say nothing about: they may match, and are left out."""

    _counts: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)

    def note(self, path: str, block: Block, records: pa.RecordBatch) -> None:
        """Add records of a block. A block that is read again is counted once."""
        if not records.num_rows:
            return
        offsets = offsets_of(records)
        partition = int(records.column("partition")[0].as_py())
        count, _, first = self._counts.get((path, block.index), (0, partition, int(offsets.min())))
        self._counts[path, block.index] = (count + records.num_rows, partition, min(first, int(offsets.min())))

    def forget(self, path: str, block: Block) -> None:
        """Forget a block that is about to be read again."""
        self._counts.pop((path, block.index), None)

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(count for count, _, _ in self._counts.values())

    def text(self, topic: str) -> str | None:
        """Say how many records can't be judged, where the first is, and what to do. None if there are none."""
        if not self._counts:
            return None
        partition, first = min((partition, first) for _, partition, first in self._counts.values())
        noun = "record" if self.count == 1 else "records"
        return (
            f"{self.count:,} {noun} can't be judged by the condition's columns and may match: what they have isn't in"
            f" these columns. They are left out. The first is at partition {partition}, offset {first:,}. Decode them"
            f" (`archiver reprocess {topic} --all`), or select them by their offsets"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRecords:
    """The records of an archive that a selection chooses. `unjudged` is filled while they are read."""

    archive: TopicArchive
    selection: Selection
    columns: Mapping[ColumnIs, TableColumn] = field(default_factory=dict)
    unjudged: UnjudgedRecords = field(default_factory=UnjudgedRecords)

    @classmethod
    def of(cls, archive: TopicArchive, selection: Selection) -> Self:
        """Look up the columns that the condition names. Raises ConfigError, RegistryError and ReplayError."""
        where = selection.where
        if where is None or not where.columns:
            return cls(archive=archive, selection=selection)
        columns = table_columns(where, archive.schema, archive.ledger())
        return cls(archive=archive, selection=selection, columns=columns)

    def read(
        self, wanted: RowRange, shape: RecordShape = AS_CONSUMED
    ) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """Give the chosen records of a range, maybe none, each time with the offset up to which all were read."""
        where = self.selection.where
        matches = where is not None and (self.columns or shape.shows)
        batches = self.archive.records(
            wanted.partition,
            wanted.start_offset,
            wanted.end_offset,
            shape=shape,
            min_timestamp=wanted.min_timestamp,
            open_file=partial(self._open, where) if where is not None and matches else open_records,
        )
        try:
            for batch in batches:
                chosen = batch if matches else self.selection.filter(batch)
                yield chosen, int(offsets_of(batch)[-1]) + 1
        finally:
            batches.close()

    def _open(self, where: Where, storage: TopicStorage, shape: RecordShape, file: TableFile) -> MatchingFile:
        opened = OpenFile.open(storage, file, shape)
        judged = Assembler(file.path, opened.reader.schema, storage.mappings, storage.coercion, AS_CONSUMED)
        return MatchingFile(
            file=opened,
            path=file.path,
            judged=judged,
            where=where,
            columns=self.columns,
            unjudged=self.unjudged,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingFile:
    """An open file that gives only the records that a condition holds for.

    `judged` assembles records in the shape that conditions are evaluated on.
    """

    file: OpenFile
    path: str
    judged: Assembler
    where: Where
    columns: Mapping[ColumnIs, TableColumn]
    unjudged: UnjudgedRecords

    @property
    def reader(self) -> SegmentReader:
        """The reader of the file."""
        return self.file.reader

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def records(self, block: Block, wanted: RowRange) -> Iterator[pa.RecordBatch]:
        """Assemble the matching records of a block in a range. Batches are sorted and never empty."""
        self.unjudged.forget(self.path, block)
        if self.columns and (self._is_ruled_out(block) or not self._may_match(block, wanted)):
            return
        assembler = self.file.assembler
        ids = assembler.field_ids | self.judged.field_ids | self._column_ids
        for rows, kafka in self.file.rows(block, wanted, ids):
            answers = self._answers(rows)
            possible = self.where.may_hold(rows.num_rows, answers)
            if not possible.any():
                continue
            rows, kafka = rows.filter(pa.array(possible)), kafka.filter(pa.array(possible))  # noqa: PLW2901 - narrowed
            answers = {column: Answer(it.holds[possible], it.unknown[possible]) for column, it in answers.items()}
            records = self.judged.records(rows, kafka)
            chosen = self.where.rows(records, answers)
            doubtful = self.where.rows(records, answers, unknown=True) & ~chosen
            self.unjudged.note(self.path, block, records.filter(pa.array(doubtful)))
            if not chosen.any():
                continue
            mask = pa.array(chosen)
            if assembler.shape is self.judged.shape:
                yield sorted_by_offset(records.filter(mask))
            else:
                yield sorted_by_offset(assembler.records(rows.filter(mask), kafka.filter(mask)))

    @property
    def _column_ids(self) -> frozenset[int]:
        found = {KEY_ID for column in self.columns.values() if column.part_id == KEY_ID}
        for column in self.columns.values():
            found.update((column.field_id, *column.unrecognized, *column.former, *filter(None, [column.errors])))
        return frozenset(found) | {SCHEMA_VERSION_ID}

    def _answers(self, rows: pa.RecordBatch) -> Answers:
        mappings = self.judged.mappings
        return {asked: answer(column, rows, mappings) for asked, column in self.columns.items()}

    def _is_ruled_out(self, block: Block) -> bool:
        """Whether the file's statistics prove that no row of the block matches, or is in doubt."""
        answers = {
            asked: Answer(_NO, _NO if is_absent(column, block, self.reader, self.judged.mappings) else _YES)
            for asked, column in self.columns.items()
        }
        return not self.where.may_hold(1, answers).any()

    def _may_match(self, block: Block, wanted: RowRange) -> bool:
        """Whether a row of the block may match, by the columns of the condition alone."""
        ids = KAFKA_IDS | self._column_ids
        return any(
            self.where.may_hold(rows.num_rows, self._answers(rows)).any()
            for rows, _ in self.file.rows(block, wanted, ids)
        )
