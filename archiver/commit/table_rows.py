"""The rows of a table as it is now, by file and offset: which ranges may lack some, and which offsets it has."""

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
    """The rows of a table's current snapshot, by file and offset."""

    def __init__(self, table: ArchiveTable, formats: SegmentFormats, mappings: MappingSource | None = None) -> None:
        self._listed = ManifestReader().files(table.iceberg)
        self._files = {file_name(file.path): file for file in self._listed}
        objects = ObjectStore.of_table(table.iceberg)
        self._storage = TopicStorage.of(objects, formats, KnownMappings(table.topic.topic, mappings))

    def suspects(self, expected: Sequence[ExpectedRange]) -> list[ExpectedRange]:
        """The ranges that may have lost rows, and those that share a file with one of them.

        Every other range has all of its files in the table, with all rows, and nobody deleted any.
        """
        wanted: Counter[str] = Counter()
        for one in expected:
            wanted.update({file_name(each.path): each.rows for each in one.files})
        bad = {name for name, rows in wanted.items() if not self._has(name, rows)}
        found: dict[str, ExpectedRange] = {}
        while more := [one for one in expected if one.id not in found and (not one.files or bad & file_names((one,)))]:
            found |= {one.id: one for one in more}
            bad |= file_names(more)
        return [one for one in expected if one.id in found]

    def _has(self, name: str, rows: int) -> bool:
        file = self._files.get(name)
        return file is not None and not file.has_deletes and file.rows >= rows

    def has_file(self, path: str) -> bool:
        """Whether the table has the file, whatever was deleted from it."""
        return file_name(path) in self._files

    def rows_beside(self, expected: Sequence[ExpectedRange], suspects: Sequence[ExpectedRange]) -> int | None:
        """The number of rows in files that don't belong to complete ranges. None where some of them were deleted."""
        whole = file_names(expected) - file_names(suspects)
        beside = [file for name, file in self._files.items() if name not in whole]
        return None if any(file.has_deletes for file in beside) else sum(file.rows for file in beside)

    def offsets(self, wanted: RowRange) -> Offsets:
        """The offsets of the table's rows in a range of a partition, ascending, each once."""
        found = [
            kafka.field(names.OFFSET).to_numpy()
            for file in self._files.values()
            if _may_hold(file, wanted)
            for kafka in self._read(file, wanted)
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def count(self, one: ExpectedRange) -> int:
        """How many offsets of a range the table has."""
        wanted = RowRange(partition=one.partition, start_offset=one.start_offset, end_offset=one.end_offset)
        return len(self.offsets(wanted))

    @property
    def bytes_per_row(self) -> float:
        """The average size of a row in the table's files. 1 where there are none."""
        rows = sum(each.rows for each in self._files.values())
        return max(1.0, sum(each.size_bytes for each in self._files.values()) / rows) if rows else 1.0

    def digest(self, wanted: RowRange) -> str:
        """The digest of the table's records in a range of a partition (docs/digest.md). Reads whole rows."""
        found = RecordDigest()
        for file in self._files.values():
            if _may_hold(file, wanted):
                with closing(OpenFile.open(self._storage, file)) as opened:
                    for block in opened.reader.blocks(wanted):
                        for records in opened.records(block, wanted):
                            found += RecordDigest.of_seen(records)
        return found.text

    def written_since(self, sequence: int) -> list[TableFile]:
        """The files with this sequence number or a higher one."""
        newer = pc.greater_equal(self._listed.columns[SEQUENCE], sequence)
        return list(self._listed.pick(np.flatnonzero(newer.to_numpy())))

    def digests(self, ranges: Sequence[ExpectedRange]) -> list[str | None]:
        """The digest of the table's records in each of these ranges of one partition, in order of offset.

        None where a record can't be read, or is in a block with one that can't. Reads whole rows, each once.
        """
        found = [RecordDigest() for _ in ranges]
        unreadable: set[int] = set()
        starts = np.array([each.start_offset for each in ranges])
        ends = np.array([each.end_offset for each in ranges])
        wanted = RowRange(partition=ranges[0].partition, start_offset=int(starts[0]), end_offset=int(ends[-1]))
        for file in self._files.values():
            at = file.offsets
            if not _may_hold(file, wanted) or (at and not ((ends > at.low) & (starts <= at.high)).any()):
                continue
            with closing(OpenFile.open(self._storage, file)) as opened:
                for block in opened.reader.blocks(wanted):
                    low = wanted.start_offset if block.low_offset is None else block.low_offset
                    high = wanted.end_offset if block.high_offset is None else block.high_offset
                    here = np.flatnonzero((ends > low) & (starts <= high))
                    try:
                        for records in opened.records(block, wanted) if len(here) else ():
                            offsets = offsets_of(records)
                            first, last = np.searchsorted(offsets, starts[here]), np.searchsorted(offsets, ends[here])
                            for each in np.flatnonzero(last > first):
                                part = records.slice(first[each], last[each] - first[each])
                                found[here[each]] += RecordDigest.of_seen(part)
                    except (BadSegment, ReplayError):
                        unreadable.update(here.tolist())
        return [None if place in unreadable else each.text for place, each in enumerate(found)]

    def _read(self, file: TableFile, wanted: RowRange) -> Iterator[pa.StructArray]:
        with closing(OpenFile.open(self._storage, file)) as opened:
            for block in opened.reader.blocks(wanted):
                yield from opened.kafka(block, wanted)


def _may_hold(file: TableFile, wanted: RowRange) -> bool:
    if file.offsets and (file.offsets.high < wanted.start_offset or file.offsets.low >= wanted.end_offset):
        return False
    held = file.partitions
    return held is None or held.low <= wanted.partition <= held.high


def file_names(ranges: Iterable[ExpectedRange]) -> set[str]:
    """The names of the files of ranges."""
    return {file_name(each.path) for one in ranges for each in one.files}
