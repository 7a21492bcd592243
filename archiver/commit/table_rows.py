"""A table's rows by file and offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.file_columns import SEQUENCE
from archiver.archive.mappings import KnownMappings, MappingSource
from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.errors import BadSegment, ReplayError
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from archiver.wire.record_digest import RecordDigest
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import file_name
from catalog.ranges.holes import ExpectedRange
from schema_mapping import names

Offsets: TypeAlias = npt.NDArray[np.int64]


class TableRows:
    def __init__(self, table: ArchiveTable, formats: SegmentFormats, mappings: MappingSource | None = None) -> None:
        self._listed = ManifestReader().files(table.iceberg)
        self._files = {file_name(file.path): file for file in self._listed}
        objects = ObjectStore.of_table(table.iceberg)
        self._storage = TopicStorage.of_store(objects, formats, KnownMappings(table.topic.topic, mappings))

    def suspects(self, expected: Sequence[ExpectedRange]) -> list[ExpectedRange]:
        """Includes ranges that share files. All other ranges are complete."""
        expected_rows: Counter[str] = Counter()
        for item in expected:
            expected_rows.update({file_name(file.path): file.rows for file in item.files})
        bad = {name for name, rows in expected_rows.items() if not self._has(name, rows)}
        suspects: dict[str, ExpectedRange] = {}
        while more := [
            item for item in expected if item.id not in suspects and (not item.files or bad & file_names((item,)))
        ]:
            suspects |= {item.id: item for item in more}
            bad |= file_names(more)
        return [item for item in expected if item.id in suspects]

    def _has(self, name: str, rows: int) -> bool:
        file = self._files.get(name)
        return file is not None and not file.has_deletes and file.rows >= rows

    def has_file(self, path: str) -> bool:
        """True even if rows were deleted from it."""
        return file_name(path) in self._files

    def rows_beside(self, expected: Sequence[ExpectedRange], suspects: Sequence[ExpectedRange]) -> int | None:
        """Return None if some rows are deleted."""
        whole = file_names(expected) - file_names(suspects)
        beside = [file for name, file in self._files.items() if name not in whole]
        return None if any(file.has_deletes for file in beside) else sum(file.rows for file in beside)

    def offsets(self, wanted: RowRange) -> Offsets:
        chunks = [
            kafka.field(names.OFFSET).to_numpy()
            for file in self._files.values()
            if _may_hold(file, wanted)
            for kafka in self._read(file, wanted)
        ]
        return np.unique(np.concatenate(chunks)) if chunks else np.empty(0, np.int64)

    def count(self, one: ExpectedRange) -> int:
        rows = RowRange(partition=one.partition, start_offset=one.start_offset, end_offset=one.end_offset)
        return len(self.offsets(rows))

    @property
    def bytes_per_row(self) -> float:
        rows = sum(file.rows for file in self._files.values())
        return max(1.0, sum(file.size_bytes for file in self._files.values()) / rows) if rows else 1.0

    def digest(self, wanted: RowRange) -> str:
        """Reads whole rows (docs/digest.md)."""
        total = RecordDigest()
        for file in self._files.values():
            if _may_hold(file, wanted):
                with closing(OpenFile.open(self._storage, file)) as opened:
                    for block in opened.reader.blocks(wanted):
                        for records in opened.records(block, wanted):
                            total += RecordDigest.of_seen(records)
        return total.text

    def written_since(self, sequence: int) -> list[TableFile]:
        newer = pc.greater_equal(self._listed.columns[SEQUENCE], sequence)
        return list(self._listed.pick(np.flatnonzero(newer.to_numpy())))

    def digests(self, ranges: Sequence[ExpectedRange]) -> list[str | None]:
        """`ranges` are of one partition. None if a record, or one in its block, can't be read."""
        sums = [RecordDigest() for _ in ranges]
        unreadable: set[int] = set()
        starts = np.array([item.start_offset for item in ranges])
        ends = np.array([item.end_offset for item in ranges])
        hull = RowRange(partition=ranges[0].partition, start_offset=int(starts[0]), end_offset=int(ends[-1]))
        for file in self._files.values():
            at = file.offsets
            if not _may_hold(file, hull) or (at and not ((ends > at.low) & (starts <= at.high)).any()):
                continue
            with closing(OpenFile.open(self._storage, file)) as opened:
                for block in opened.reader.blocks(hull):
                    low = hull.start_offset if block.low_offset is None else block.low_offset
                    high = hull.end_offset if block.high_offset is None else block.high_offset
                    touched = np.flatnonzero((ends > low) & (starts <= high))
                    try:
                        for records in opened.records(block, hull) if len(touched) else ():
                            offsets = offsets_of(records)
                            first, last = (
                                np.searchsorted(offsets, starts[touched]),
                                np.searchsorted(offsets, ends[touched]),
                            )
                            for position in np.flatnonzero(last > first):
                                part = records.slice(first[position], last[position] - first[position])
                                sums[touched[position]] += RecordDigest.of_seen(part)
                    except (BadSegment, ReplayError):
                        unreadable.update(touched.tolist())
        return [None if index in unreadable else total.text for index, total in enumerate(sums)]

    def _read(self, file: TableFile, wanted: RowRange) -> Iterator[pa.StructArray]:
        with closing(OpenFile.open(self._storage, file)) as opened:
            for block in opened.reader.blocks(wanted):
                yield from opened.kafka(block, wanted)


def _may_hold(file: TableFile, wanted: RowRange) -> bool:
    if file.offsets and (file.offsets.high < wanted.start_offset or file.offsets.low >= wanted.end_offset):
        return False
    partitions = file.partitions
    return partitions is None or partitions.low <= wanted.partition <= partitions.high


def within(offsets: Offsets, spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """`spans` are half-open, ascending and disjoint."""
    if not spans:
        return np.zeros(len(offsets), np.bool_)
    starts, ends = np.array(spans, np.int64).T
    places = np.searchsorted(starts, offsets, side="right") - 1
    inside: npt.NDArray[np.bool_] = (places >= 0) & (offsets < ends[np.maximum(places, 0)])
    return inside


def file_names(ranges: Iterable[ExpectedRange]) -> set[str]:
    return {file_name(file.path) for item in ranges for file in item.files}
