"""The rows of a table as it is now, by file and offset: which ranges may lack some, and which offsets it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings, MappingSource
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import ManifestReader, TableFile
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
        self._files = {file_name(file.path): file for file in ManifestReader().files(table.iceberg)}
        objects = ObjectStore.of_table(table.iceberg)
        self._storage = TopicStorage(
            deletes=DeleteFiles(objects, formats),
            objects=objects,
            formats=formats,
            mappings=KnownMappings(table.topic.topic, mappings),
        )

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
