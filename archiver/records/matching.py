"""Read the selected records of an archive."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.partition_scan import open_records
from archiver.archive.records import AS_CONSUMED, RecordShape
from archiver.archive.table_files import TableFile
from archiver.archive.topic_archive import TopicArchive
from archiver.records.selection import Selection
from archiver.records.unjudged import UnjudgedRecords
from archiver.storage.segment import RowRange

if TYPE_CHECKING:
    from archiver.records.matching_file import MatchingFile
    from archiver.records.table_columns import TableColumn
    from archiver.records.where import Where
    from archiver.records.where_syntax import ColumnIs


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRecords:
    """`unjudged` is filled while records are read."""

    archive: TopicArchive
    selection: Selection
    columns: Mapping[ColumnIs, TableColumn] = field(default_factory=dict)
    unjudged: UnjudgedRecords = field(default_factory=UnjudgedRecords)

    @classmethod
    def of(cls, archive: TopicArchive, selection: Selection) -> Self:
        """Raises ConfigError, RegistryError and ReplayError."""
        where = selection.where
        if where is not None and where.metadata_names:
            from archiver.records.metadata_terms import with_metadata

            where = with_metadata(where, archive.metadata(where.metadata_names))
            selection = replace(selection, where=where)
        if where is None or not where.columns:
            return cls(archive=archive, selection=selection)
        from archiver.records.table_columns import table_columns

        columns = table_columns(where, archive.schema, archive.ledger())
        return cls(archive=archive, selection=selection, columns=columns)

    def read(
        self, wanted: RowRange, shape: RecordShape = AS_CONSUMED
    ) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """Yield chosen records, maybe none, with the offset after all that were read."""
        where = self.selection.where
        matches = where is not None and (self.columns or shape.shows or where.parts & {"key", "headers"})
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
        from archiver.records.block_facts import raw_key_id
        from archiver.records.matching_file import MatchingFile

        opened = OpenFile.open(storage, file, shape)
        judged = Assembler(file.path, opened.reader.schema, storage.mappings, storage.coercion, AS_CONSUMED)
        return MatchingFile(
            file=opened,
            path=file.path,
            judged=judged,
            where=where,
            columns=self.columns,
            unjudged=self.unjudged,
            key_id=raw_key_id(self.archive.schema),
        )
