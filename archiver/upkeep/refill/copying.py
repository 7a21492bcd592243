"""Copy rows that the table lacks to a new file. Cells, columns and mappings stay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.commit.table_rows import within
from archiver.rewrite.rewritten_file import RewrittenFile
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin, SegmentReader
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo
from catalog.partitioning import UNPLACED
from schema_mapping import names

_NO_OFFSETS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """`rows` and `digest` are of the source in the range, without gone records.

    `file` is None if no row was needed; `offsets` are the copy's.
    """

    rows: int
    digest: str
    file: DataFileInfo | None
    offsets: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_OFFSETS, compare=False)


@dataclass(frozen=True, slots=True)
class RowCopier:
    target: RewriteTarget

    def copy(
        self,
        source: DataFileInfo,
        wanted: RowRange,
        *,
        without: npt.NDArray[np.int64],
        gone: Sequence[tuple[int, int]] = (),
        is_part: bool = False,
    ) -> CopiedRows:
        """Upload the rows of `wanted` whose offsets are neither in `without` nor in `gone` spans.

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
                rows, digest, offsets = self._write(file, new, wanted, without, gone)
                if not new.rows:
                    return CopiedRows(rows=rows, digest=digest.text, file=None)
                new.close(
                    source.path.rpartition("/")[0],
                    (wanted.partition, wanted.start_offset),
                    origin=self._origin(file.reader, wanted) if new.rows == rows and not (is_part or gone) else None,
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
        return CopiedRows(rows=rows, digest=digest.text, file=beside, offsets=offsets)

    def offsets(self, source: DataFileInfo, wanted: RowRange) -> npt.NDArray[np.int64]:
        """Raises like `copy`."""
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
        file: OpenFile,
        new: RewrittenFile,
        wanted: RowRange,
        without: npt.NDArray[np.int64],
        gone: Sequence[tuple[int, int]],
    ) -> tuple[int, RecordDigest, npt.NDArray[np.int64]]:
        count, seen, written = 0, RecordDigest(), [_NO_OFFSETS]
        for block in file.reader.blocks(wanted):
            for rows, kafka in file.rows(block, wanted):
                records, offsets = file.assembler.records(rows, kafka), kafka.field(names.OFFSET).to_numpy()
                is_gone = within(offsets, gone)
                count += len(offsets) - int(is_gone.sum())
                seen += RecordDigest.of_seen(records.filter(pa.array(~is_gone)) if is_gone.any() else records)
                kept = ~(is_gone | np.isin(offsets, without))
                chosen = rows.filter(pa.array(kept))
                if chosen.num_rows:
                    new.write(chosen, records.filter(pa.array(kept)))
                    written.append(offsets[kept])
        return count, seen, np.unique(np.concatenate(written))

    def _layout(self, reader: SegmentReader) -> SegmentLayout:
        about = reader.metadata
        version = about.schema_version
        assert version is not None, "a file of ours says what wrote it"
        return self.target.layout(reader.schema, version, about.mappings)

    @staticmethod
    def _origin(reader: SegmentReader, wanted: RowRange) -> SegmentOrigin | None:
        """None if rows are missing or of several ranges: a rebuilt registry would see a whole range."""
        origin = reader.metadata.origin
        if origin is None or origin.files > 1:
            return None
        start = max(origin.start_offset, wanted.start_offset)
        return replace(origin, range_id="", start_offset=start, end_offset=min(origin.end_offset, wanted.end_offset))
