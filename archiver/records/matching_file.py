"""Read the matching records of one open file.

Blocks are skipped by statistics, sets and filters; then only the condition's columns are read, until a row
may match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.offset_order import sorted_by_offset
from archiver.archive.open_file import OpenFile
from archiver.archive.records import KAFKA_IDS
from archiver.records.block_facts import BlockFacts
from archiver.records.column_answers import answer
from archiver.records.table_columns import TableColumn
from archiver.records.unjudged import UnjudgedRecords
from archiver.records.where import Answer, Answers, Where
from archiver.records.where_syntax import ColumnIs
from archiver.storage.row_columns import field_id
from archiver.storage.segment import Block, RowRange, SegmentReader
from schema_mapping.columns.fixed import KEY_ID, SCHEMA_VERSION_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingFile:
    """`judged` assembles records for conditions. `key_id` is the column of raw keys."""

    file: OpenFile
    path: str
    judged: Assembler
    where: Where
    columns: Mapping[ColumnIs, TableColumn]
    unjudged: UnjudgedRecords
    key_id: int | None = None

    @property
    def reader(self) -> SegmentReader:
        return self.file.reader

    def close(self) -> None:
        self.file.close()

    def records(self, block: Block, wanted: RowRange) -> Iterator[pa.RecordBatch]:
        self.unjudged.forget(self.path, block, wanted.partition)
        if self._is_ruled_out(block) or (self.columns and not self._may_match(block, wanted)):
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
        ids = {KEY_ID for column in self.columns.values() if column.part_id == KEY_ID}
        for column in self.columns.values():
            ids.update((column.field_id, *column.unrecognized, *column.former, *filter(None, [column.errors])))
        return frozenset(ids) | {SCHEMA_VERSION_ID}

    @property
    def _lacks_a_column(self) -> bool:
        present = frozenset(_field_ids(self.reader.schema))
        return any(
            present.isdisjoint((column.field_id, *column.unrecognized, *column.former))
            for column in self.columns.values()
        )

    def _answers(self, rows: pa.RecordBatch) -> Answers:
        mappings = self.judged.mappings
        return {asked: answer(column, rows, mappings) for asked, column in self.columns.items()}

    def _is_ruled_out(self, block: Block) -> bool:
        key_id = None if self.judged.coercion.key else self.key_id
        return not BlockFacts(self.reader, block, self.columns, self.judged.mappings, key_id).by_filters(self.where)

    def _may_match(self, block: Block, wanted: RowRange) -> bool:
        if self._lacks_a_column:
            return True
        ids = KAFKA_IDS | self._column_ids
        return any(
            self.where.may_hold(rows.num_rows, self._answers(rows)).any()
            for rows, _ in self.file.rows(block, wanted, ids)
        )


def _field_ids(fields: Iterable[pa.Field]) -> Iterator[int]:
    for field in fields:
        if (identifier := field_id(field)) is not None:
            yield identifier
        if pa.types.is_nested(field.type):
            yield from _field_ids(field.type.field(index) for index in range(field.type.num_fields))
