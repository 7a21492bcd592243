"""Copy the rows of a data file that the table lacks to a new file. Cells, columns and mappings stay."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.rewrite.rewritten_file import RewrittenFile
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin, SegmentReader
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo
from catalog.partitioning import UNPLACED
from schema_mapping import names


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """Rows and digest of the source in the range, and the copy. `file` is None if no row was needed."""

    rows: int
    digest: str
    file: DataFileInfo | None


@dataclass(frozen=True, slots=True)
class RowCopier:
    target: RewriteTarget

    def copy(
        self, source: DataFileInfo, wanted: RowRange, *, without: npt.NDArray[np.int64], is_part: bool = False
    ) -> CopiedRows:
        """Upload the rows of `wanted` whose offsets are not in `without`, next to the source.

        With `is_part` the source lacks rows, so the footer names no offsets. Raises StorageError, and ReplayError for
        unreadable rows.
        """
        target = self.target
        form, mappings = target.formats.named(source.format, source.path), KnownMappings(target.topic, target)
        with (
            closing(OpenFile.whole(form, target.objects, source.path, mappings)) as file,
            TaskSpool(target.spool) as spool,
        ):
            with RewrittenFile(target, spool, self._layout(file.reader)) as new:
                rows, digest = self._write(file, new, wanted, without)
                if not new.rows:
                    return CopiedRows(rows=rows, digest=digest.text, file=None)
                new.close(
                    source.path.rpartition("/")[0],
                    (wanted.partition, wanted.start_offset),
                    origin=self._origin(file.reader, wanted) if new.rows == rows and not is_part else None,
                    partition=UNPLACED if source.partition.is_time_alone else source.partition,
                )
            new.check(source.path)
            info = new.upload()
        beside = replace(
            info,
            partition=source.partition,
            min_timestamp=source.min_timestamp,
            max_timestamp=source.max_timestamp,
        )
        return CopiedRows(rows=rows, digest=digest.text, file=beside)

    def offsets(self, source: DataFileInfo, wanted: RowRange) -> npt.NDArray[np.int64]:
        """The offsets of a file's rows in a range, ascending and unique. Raises like `copy`."""
        target = self.target
        form, mappings = target.formats.named(source.format, source.path), KnownMappings(target.topic, target)
        with closing(OpenFile.whole(form, target.objects, source.path, mappings)) as file:
            parts = [
                kafka.field(names.OFFSET).to_numpy()
                for block in file.reader.blocks(wanted)
                for kafka in file.kafka(block, wanted)
            ]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    @staticmethod
    def _write(
        file: OpenFile, new: RewrittenFile, wanted: RowRange, without: npt.NDArray[np.int64]
    ) -> tuple[int, RecordDigest]:
        """Return number and digest of all rows in the range, also unwritten ones."""
        count, seen = 0, RecordDigest()
        for block in file.reader.blocks(wanted):
            for rows, kafka in file.rows(block, wanted):
                records = file.assembler.records(rows, kafka)
                count += rows.num_rows
                seen += RecordDigest.of_seen(records)
                kept = pa.array(~np.isin(kafka.field(names.OFFSET).to_numpy(), without))
                chosen = rows.filter(kept)
                if chosen.num_rows:
                    new.write(chosen, records.filter(kept))
        return count, seen

    def _layout(self, reader: SegmentReader) -> SegmentLayout:
        about = reader.metadata
        version = about.schema_version
        assert version is not None, "a file of ours says what wrote it"
        return self.target.layout(reader.schema, version, about.mappings)

    @staticmethod
    def _origin(reader: SegmentReader, wanted: RowRange) -> SegmentOrigin | None:
        """None for a copy that lacks rows, or of several ranges: a rebuilt registry would take it for a whole range."""
        origin = reader.metadata.origin
        if origin is None or origin.files > 1:
            return None
        start = max(origin.start_offset, wanted.start_offset)
        return replace(origin, range_id="", start_offset=start, end_offset=min(origin.end_offset, wanted.end_offset))
