"""Ranges made of rows that neither journal nor footers name (ADR 0072).

`archiver.offsets` proves that they were archived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.deletes import Deletes
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import TableFile
from archiver.commit.footers import NO_EPOCH, table_info
from archiver.errors import ReplayError
from archiver.storage.segment import RowRange, SegmentMetadata
from archiver.wire.record_digest import RecordDigest
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import first_archived
from catalog.model import new_id, ulid_in
from catalog.ranges.spans import uncovered
from catalog.ranges.stored_ranges import StoredFile, StoredRange
from schema_mapping import names
from schema_mapping.row import RowMapping, row_mapping_from_text

_Offsets: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VersionMappings:
    texts: Mapping[int, str]

    def row_mapping(self, version: int) -> RowMapping | None:
        text = self.texts.get(version)
        return None if text is None else row_mapping_from_text(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesOfRows:
    """Of `unknown` ranges more records may have been archived."""

    ranges: tuple[StoredRange, ...]
    unknown: tuple[StoredRange, ...] = ()


@dataclass(slots=True, kw_only=True)
class UnnamedRows:
    table: ArchiveTable
    storage: TopicStorage
    files: Mapping[str, TableFile]
    footers: Mapping[str, SegmentMetadata]
    registered: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def complete(self, ranges: Sequence[StoredRange], journaled: Collection[tuple[int, int, int]]) -> RangesOfRows:
        """Add rows without a range. Raises StorageError.

        `journaled` are offsets (partition, start, end).
        """
        unnamed = [self.files[path] for path, footer in sorted(self.footers.items()) if footer.origin is None]
        self._ids = {file.id for stored in ranges for file in stored.files}
        made, unknown = list[StoredRange](), list[StoredRange]()
        for stored in ranges:
            beside = [file for file in unnamed if _may_hold(file, stored)]
            is_journaled = (stored.partition, stored.start_offset, stored.end_offset) in journaled
            if is_journaled or stored.lost or not (beside or self._is_partial(stored)):
                made.append(stored)
                continue
            named = [self.files[path] for path in stored.paths if path in self.files]
            counted = self._counted(stored, named, beside)
            made.append(counted)
            if self._is_partial(stored):
                unknown.append(counted)
        for partition, reached in sorted(self.table.offsets.items()):
            spans = [stored.offsets for stored in made if stored.partition == partition]
            spans += self.registered.get(partition, ())
            for start, end in self._open_spans(partition, spans, reached.next_offset, unnamed):
                unknown.append(self._of_rows(partition, start, end, unnamed))
                made.append(unknown[-1])
        made.sort(key=lambda stored: (stored.partition, stored.start_offset))
        return RangesOfRows(ranges=tuple(made), unknown=tuple(unknown))

    def _is_partial(self, stored: StoredRange) -> bool:
        origins = [footer.origin for path in stored.paths if (footer := self.footers.get(path)) and footer.origin]
        return any(origin.files != len(origins) for origin in origins)

    def _open_spans(
        self, partition: int, spans: Sequence[tuple[int, int]], end: int, unnamed: Iterable[TableFile]
    ) -> list[tuple[int, int]]:
        """Return the archived offsets without a range.

        Before the first known range, they begin at a retained snapshot's first offset, or the first row.
        """
        first = min((start for start, _ in spans), default=end)
        retired = self.table.first_offsets.get(partition, 0)
        rows = self._first_row(partition, retired, first, unnamed)
        named = max(retired, first_archived(self.table.iceberg.metadata).get(partition, first))
        begin = min(named, first if rows is None else rows)
        return uncovered([(begin, end)], spans) if begin < end else []

    def _first_row(self, partition: int, start: int, end: int, unnamed: Iterable[TableFile]) -> int | None:
        if start >= end:
            return None
        rows_of = RowRange(partition=partition, start_offset=start, end_offset=end)
        lowest = [
            int(offsets[0])
            for file in unnamed
            if _touches(file, rows_of) and len(offsets := self._offsets(file, rows_of, is_live=True))
        ]
        return min(lowest, default=None)

    def _of_rows(self, partition: int, start: int, end: int, unnamed: Iterable[TableFile]) -> StoredRange:
        empty = StoredFile(
            id=new_id(), file=None, rows=0, digest=None, expected=0, schema_version=self.table.ledger_version
        )
        stored = StoredRange(
            topic=self.table.topic.topic,
            partition=partition,
            start_offset=start,
            end_offset=end,
            leader_epoch=NO_EPOCH,
            created_ms=0,
            files=(empty,),
        )
        return self._counted(stored, (), [file for file in unnamed if _may_hold(file, stored)])

    def _counted(self, stored: StoredRange, named: Iterable[TableFile], unnamed: Iterable[TableFile]) -> StoredRange:
        """Each row counts once. In named files deleted rows count too."""
        rows_of = RowRange(partition=stored.partition, start_offset=stored.start_offset, end_offset=stored.end_offset)
        seen: _Offsets = np.empty(0, np.int64)
        counted: list[StoredFile] = []
        ids = {file.path: file.id for file in stored.files}
        for is_live, files in ((False, named), (True, unnamed)):
            for file in files:
                fresh = np.setdiff1d(self._offsets(file, rows_of, is_live=is_live), seen)
                if not len(fresh):
                    continue
                seen = np.union1d(seen, fresh)
                footer = self.footers[file.path]
                counted.append(
                    StoredFile(
                        id=ids.get(file.path) or self._id(file, stored),
                        file=table_info(file, footer),
                        rows=len(fresh),
                        digest=self._digest(file, rows_of, fresh, is_live=is_live),
                        expected=len(fresh),
                        schema_version=footer.schema_version or self.table.ledger_version,
                    )
                )
        return replace(stored, files=tuple(counted)) if counted else stored

    def _id(self, file: TableFile, stored: StoredRange) -> str:
        row_id = ulid_in(file.path) or new_id()
        if row_id in self._ids:
            row_id = f"{row_id}-{stored.partition}-{stored.start_offset}"
        self._ids.add(row_id)
        return row_id

    def _offsets(self, file: TableFile, rows_of: RowRange, *, is_live: bool) -> _Offsets:
        with closing(self._open(file, is_live=is_live)) as opened:
            parts = [
                kafka.field(names.OFFSET).to_numpy()
                for block in opened.reader.blocks(rows_of)
                for kafka in opened.kafka(block, rows_of)
            ]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def _digest(self, file: TableFile, rows_of: RowRange, chosen: _Offsets, *, is_live: bool) -> str | None:
        total = RecordDigest()
        try:
            with closing(self._open(file, is_live=is_live)) as opened:
                for block in opened.reader.blocks(rows_of):
                    for rows, kafka in opened.rows(block, rows_of):
                        mask = pa.array(np.isin(kafka.field(names.OFFSET).to_numpy(), chosen))
                        total += RecordDigest.of_seen(opened.assembler.records(rows, kafka).filter(mask))
        except ReplayError:
            return None
        return total.text

    def _open(self, file: TableFile, *, is_live: bool) -> OpenFile:
        opened = OpenFile.open(self.storage, file)
        return opened if is_live else replace(opened, deletes=Deletes(np.empty(0, np.int64)))


def _may_hold(file: TableFile, stored: StoredRange) -> bool:
    return _touches(
        file, RowRange(partition=stored.partition, start_offset=stored.start_offset, end_offset=stored.end_offset)
    )


def _touches(file: TableFile, rows_of: RowRange) -> bool:
    if file.offsets and (file.offsets.high < rows_of.start_offset or file.offsets.low >= rows_of.end_offset):
        return False
    counted = file.partitions
    return counted is None or counted.low <= rows_of.partition <= counted.high
