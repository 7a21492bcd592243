"""Read archived records, committed or staged, for comparison with the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.deletes import Mask
from archiver.archive.mappings import KnownMappings, LedgerMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import ASSEMBLED
from archiver.archive.table_files import ManifestReader, TableFiles
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TranslatedRange
from catalog.registry import Registry


class ArchiveReader:
    """Staged files that the table has count once."""

    def __init__(self, storage: TopicStorage, files: TableFiles, staged: Iterable[TranslatedRange]) -> None:
        self._storage = storage
        self._files = files
        waiting = {file.path: (entry, file) for entry in staged for file in entry.files}
        committed = files.named(waiting)
        self._staged = {path: entry for path, entry in waiting.items() if path not in committed}

    @classmethod
    def of(cls, known: ArchiveTable, registry: Registry, catalog: TableCatalog, formats: SegmentFormats) -> Self:
        """Raises CatalogUnreachable if only the registry answers, TableMissing if the table was recreated."""
        topic = known.topic
        staged = registry.files.pending(topic)  # first: what is committed in between is then in the table
        table = catalog.reload(known)
        mappings = KnownMappings(topic.topic, LedgerMappings(registry, topic))
        storage = TopicStorage.of_store(ObjectStore.of_table(table.iceberg), formats, mappings)
        return cls(storage, ManifestReader().files(table.iceberg), staged)

    def read(self, partition: int, start_offset: int, end_offset: int) -> pa.RecordBatch:
        """By offset. Raises StorageError."""
        range_ = RowRange(partition=partition, start_offset=start_offset, end_offset=end_offset)
        batches = [batch for file in self._opened(range_) for batch in _records(file, range_)]
        records = pa.Table.from_batches(batches, ASSEMBLED).sort_by("offset").combine_chunks().to_batches()
        return records[0] if records else pa.RecordBatch.from_pylist([], ASSEMBLED)

    def _opened(self, wanted: RowRange) -> Iterator[OpenFile]:
        for listed in self._files.pick(np.flatnonzero(_may_hold(self._files.columns, wanted))):
            yield OpenFile.open(self._storage, listed)
        for path, (range_, file) in self._staged.items():
            if range_.partition == wanted.partition:
                form = self._storage.formats.named(file.format, path)
                yield OpenFile.whole(form, self._storage.objects, path, self._storage.mappings)


def _records(file: OpenFile, wanted: RowRange) -> Iterator[pa.RecordBatch]:
    with closing(file):
        for block in file.reader.blocks(wanted):
            yield from file.records(block, wanted)


def _may_hold(files: pa.Table, wanted: RowRange) -> Mask:
    partition, first, last = wanted.partition, wanted.start_offset, wanted.end_offset - 1
    answers = (
        pc.greater_equal(files[file_columns.HIGH_PARTITION], partition),
        pc.less_equal(files[file_columns.LOW_PARTITION], partition),
        pc.greater_equal(files[file_columns.HIGH_OFFSET], first),
        pc.less_equal(files[file_columns.LOW_OFFSET], last),
    )
    kept = np.ones(files.num_rows, np.bool_)
    for answer in answers:
        kept &= pc.fill_null(answer, fill_value=True).to_numpy()
    return kept
