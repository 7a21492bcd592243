"""Copy rows of a data file to a new file: those in a range of offsets that the table lacks.

Cells, columns and mappings stay as they are. Only rows are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.deletes import Deletes
from archiver.archive.mappings import KnownMappings, MappingSource
from archiver.archive.open_file import OpenFile
from archiver.storage.file_names import DataFileName
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin, SegmentReader, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, new_id
from schema_mapping import names


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """The rows and the digest of the source in the range, and the copy. `file` is None where no row was wanted."""

    rows: int
    digest: str
    file: DataFileInfo | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCopier:
    """Copies rows of a topic's files. `mappings` has the mappings of files whose footers have none."""

    topic: str
    objects: ObjectStore
    formats: SegmentFormats
    spool: Path
    mappings: MappingSource
    table_properties: dict[str, str]
    bloom_filters: Mapping[int, float] = field(default_factory=dict)

    def copy(
        self, source: DataFileInfo, wanted: RowRange, *, without: npt.NDArray[np.int64], is_part: bool = False
    ) -> CopiedRows:
        """Upload a file with the rows of `wanted` whose offsets are not in `without`, next to the source.

        `is_part` says that the source itself lacks rows of its range. Then the footer of the copy names no offsets: it
        would claim to have all of their records. Raises the leaves of StorageError, and ReplayError where rows can't be
        read.
        """
        fresh = self.formats.written
        source_format = self.formats.named(source.format, source.path)
        with source_format.open(self.objects, source.path) as reader, TaskSpool(self.spool) as spool:
            mappings = KnownMappings(self.topic, self.mappings)
            mappings.learn(reader.metadata)
            assembler = Assembler(source.path, reader.schema, mappings)
            file = OpenFile(reader, Deletes(np.empty(0, np.int64)), assembler)
            file_id = new_id()
            local = spool.create(f"{file_id}.{fresh.extension}")
            writer = fresh.start(local, self._layout(reader))
            path = f"{source.path.rpartition('/')[0]}/{self._name(file_id, wanted)}"
            with closing(_Aborting(writer)):
                found, taken = self._write(file, writer, wanted, without)
                if not writer.rows:
                    return CopiedRows(rows=found[0], digest=found[1].text, file=None)
                info = writer.close(
                    origin=self._origin(reader, wanted) if writer.rows == found[0] and not is_part else None,
                    path=path,
                    partition_value=source.partition_value,
                    digest=taken.text,
                    partition=source.partition,
                )
            self.objects.upload(local, path, expected=info.size_bytes)
        beside = replace(
            info,
            min_timestamp=source.min_timestamp,
            max_timestamp=source.max_timestamp,
            partitioned_by=source.partitioned_by,
        )
        return CopiedRows(rows=found[0], digest=found[1].text, file=beside)

    @staticmethod
    def _write(
        file: OpenFile, writer: SegmentWriter, wanted: RowRange, without: npt.NDArray[np.int64]
    ) -> tuple[tuple[int, RecordDigest], RecordDigest]:
        """Write the wanted rows.

        Returns the number and digest of all rows in the range, and the digest of the written rows.
        """
        count, seen, taken = 0, RecordDigest(), RecordDigest()
        for block in file.reader.blocks(wanted):
            for rows, kafka in file.rows(block, wanted):
                records = file.assembler.records(rows, kafka)
                count += rows.num_rows
                seen += RecordDigest.of_seen(records)
                kept = pa.array(~np.isin(kafka.field(names.OFFSET).to_numpy(), without))
                chosen = rows.filter(kept)
                if chosen.num_rows:
                    writer.write(chosen)
                    taken += RecordDigest.of_seen(records.filter(kept))
        return (count, seen), taken

    def _layout(self, reader: SegmentReader) -> SegmentLayout:
        about = reader.metadata
        version = about.schema_version
        assert version is not None, "a file of ours says what wrote it"
        return SegmentLayout(
            schema=reader.schema,
            mapping=about.mappings[version],
            schema_version=version,
            table_properties=self.table_properties,
            bloom_filters=self.bloom_filters,
            other_mappings=about.other_mappings,
        )

    def _name(self, file_id: str, wanted: RowRange) -> DataFileName:
        return DataFileName(
            topic=self.topic,
            ulid=file_id,
            extension=self.formats.written.extension,
            partition=wanted.partition,
            start_offset=wanted.start_offset,
        )

    @staticmethod
    def _origin(reader: SegmentReader, wanted: RowRange) -> SegmentOrigin | None:
        """The offsets of which the copy has all records that the source has.

        A copy that lacks some of these rows gets no origin: when a registry is rebuilt, it would be taken for the whole
        range.
        """
        origin = reader.metadata.origin
        if origin is None:
            return None
        start = max(origin.start_offset, wanted.start_offset)
        return replace(origin, start_offset=start, end_offset=min(origin.end_offset, wanted.end_offset))


@dataclass(frozen=True, slots=True)
class _Aborting:
    writer: SegmentWriter

    def close(self) -> None:
        self.writer.abort()
