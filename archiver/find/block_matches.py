"""Finds the matching rows of one block by the columns of the condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.open_file import OpenFile, numbers_or_none
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile
from archiver.find.report import FindReport
from archiver.find.source import FindSource
from archiver.records.column_answers import answer, ids_to_read
from archiver.records.where import Answers, Mask
from archiver.storage.segment import Block
from schema_mapping import names
from schema_mapping.columns.fixed import HEADERS_ID

Numbers = npt.NDArray[np.int64]
_VALUE: Final = "value"


@dataclass(frozen=True, slots=True)
class MatchedBlock:
    source: FindSource
    file: TableFile
    block: Block


@dataclass(frozen=True, slots=True)
class BlockMatches:
    """Partitions, offsets, timestamps (ms), and rising positions in the block."""

    matched: MatchedBlock
    partitions: Numbers
    offsets: Numbers
    times: Numbers
    positions: Numbers

    def __len__(self) -> int:
        return len(self.positions)


def block_matches(
    source: FindSource, file: TableFile, opened: OpenFile, block: Block, report: FindReport
) -> BlockMatches:
    """Find rows that weren't deleted or retired; rows that can't be judged are noted.

    Raises StorageError and ReplayError.
    """
    parts = source.query.where.parts
    needs_values = _VALUE in parts
    ids = KAFKA_IDS | ids_to_read(source.columns.values(), opened.reader.schema)
    if needs_values:
        ids |= opened.assembler.field_ids
    if "key" in parts and source.facts.key_id is not None:
        ids |= {source.facts.key_id}
    if "headers" in parts:
        ids |= {HEADERS_ID}
    parts_found: list[tuple[Numbers, ...]] = []
    doubtful: list[pa.RecordBatch] = []
    first = block.first_row
    for rows in opened.reader.read(block, ids | opened.deletes.field_ids):
        kafka = opened.assembler.kafka(rows)
        partitions, offsets = (numbers_or_none(kafka.field(name)) for name in (names.PARTITION, names.OFFSET))
        kept = opened.deletes.survivors(rows, first) & (partitions >= 0) & (offsets >= 0)
        kept &= _in_archive(source, partitions, offsets)
        before, count = first - block.first_row, rows.num_rows
        first += count
        if not kept.any():
            continue
        rows, kafka = rows.filter(pa.array(kept)), kafka.filter(pa.array(kept))  # noqa: PLW2901 - narrowed
        assembler = opened.assembler
        records = assembler.records(rows, kafka) if needs_values else assembler.outlines(rows, kafka, parts)
        answers = _answers(source, rows)
        chosen = source.query.where.rows(records, answers)
        if answers:
            unsure = source.query.where.rows(records, answers, unknown=True) & ~chosen
            if unsure.any():
                doubtful.append(records.select(["partition", "offset"]).filter(pa.array(unsure)))
        places = np.flatnonzero(kept)[chosen]
        if len(places):
            times = records.column("timestamp").to_numpy()[chosen]
            parts_found.append((partitions[places], offsets[places], times, places + before))
    source.unjudged.forget(file.path, block)
    for batch in doubtful:
        source.unjudged.note(file.path, block, batch)
    report.add(blocks_read=1, rows_judged=first - block.first_row, unjudged=sum(it.num_rows for it in doubtful))
    columns = [np.concatenate(column).astype(np.int64) for column in zip(*parts_found, strict=True)]
    return BlockMatches(MatchedBlock(source, file, block), *(columns or [np.empty(0, np.int64)] * 4))


def _answers(source: FindSource, rows: pa.RecordBatch) -> Answers:
    mappings = source.storage.mappings
    return {asked: answer(column, rows, mappings) for asked, column in source.columns.items()}


def _in_archive(source: FindSource, partitions: Numbers, offsets: Numbers) -> Mask:
    kept = np.ones(len(offsets), np.bool_)
    for partition, first in source.snapshot.first_offsets.items():
        if first:
            kept &= (partitions != partition) | (offsets >= first)
    for partition, end in source.snapshot.next_offsets.items():  # other engines can insert rows after it
        kept &= (partitions != partition) | (offsets < end)
    return kept
