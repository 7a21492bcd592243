"""Writes the merged rows of a group to new files, uploads each and reads it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.mappings import KnownMappings
from archiver.archive.offset_order import offsets_of
from archiver.errors import UpkeepError
from archiver.fault_points import FaultPoint, pass_point
from archiver.storage.file_names import DataFileName
from archiver.storage.segment import SegmentLayout, SegmentOrigin, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.compact.borders import END, FIRST, Borders, KeptSpan, is_one_range
from archiver.upkeep.compact.read_back import FoundSpan, read_back
from archiver.upkeep.compact.source_rows import ROW, SourceRows
from archiver.upkeep.compact.target import CompactTarget
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, new_id
from catalog.recognition import Recognition

_UNNAMED: Final = "a file that is being written"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """A new file of one Kafka partition, uploaded and read back: what it has of each span that it covers."""

    file: DataFileInfo
    partition: int
    spans: tuple[KeptSpan, ...]
    found: tuple[FoundSpan, ...]


@dataclass(slots=True, kw_only=True)
class _Open:
    """The file that is being written. It covers the offsets from `start` on."""

    id: str
    local: SpoolFile
    writer: SegmentWriter
    partition: int
    start: int
    low: int
    high: int
    digest: RecordDigest


class NewFiles:
    """Writes streams of rows to files. `made` has those that are finished.

    With `is_cut` a file ends at the target size, and its digest is computed from the rows. Else all rows go to one
    file, with the digest of the old files' rows.
    """

    def __init__(
        self,
        target: CompactTarget,
        spool: TaskSpool,
        layout: SegmentLayout,
        mappings: KnownMappings,
        sources: Sequence[SourceRows],
        *,
        is_cut: bool,
    ) -> None:
        self._target = target
        self._spool = spool
        self._layout = layout
        self._sources = sources
        self._is_cut = is_cut
        self._assembler = Assembler(_UNNAMED, layout.schema, mappings)
        self._open: _Open | None = None
        self._cut_at: int | None = None
        self.made: list[MadeFile] = []

    def write(self, partition: int, batches: Iterator[pa.RecordBatch], borders: Borders) -> None:
        """Write the rows of one Kafka partition. Raises UpkeepError and the leaves of StorageError."""
        start, last = FIRST, -1
        try:
            for batch in batches:
                last = self._checked(batch, last, partition)
                for piece in self._pieces(batch):
                    low = int(offsets_of(piece)[0])
                    if self._open is not None and self._cut_at is not None and low >= self._cut_at:
                        start, self._cut_at = self._cut_at, None
                        self._end(borders, start)
                    self._append(piece, partition, start)
                    if self._is_cut and self._cut_at is None and self._is_full():
                        self._cut_at = borders.cut(int(offsets_of(piece)[-1]) + 1)
            self._cut_at = None
            if self._open is not None:
                self._end(borders, END)
        except BaseException:
            if self._open is not None:
                self._open.writer.abort()
            raise

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0 if self._cut_at is None else int(np.searchsorted(offsets_of(batch), self._cut_at))
        if at:
            yield batch.slice(0, at)
        if at < batch.num_rows:
            yield batch.slice(at)

    def _checked(self, batch: pa.RecordBatch, last: int, partition: int) -> int:
        offsets = offsets_of(batch)
        steps = np.diff(offsets, prepend=last)
        if (steps <= 0).any():
            raise UpkeepError(
                "two rows of the table claim the same offset: somebody added rows that the archiver didn't write; the"
                " files stay as they are. Remove them",
                partition=partition,
                offset=int(offsets[int(np.argmax(steps <= 0))]),
            )
        return int(offsets[-1])

    def _append(self, piece: pa.RecordBatch, partition: int, start: int) -> None:
        offsets = offsets_of(piece)
        rows = pa.RecordBatch.from_arrays(piece.column(ROW).flatten(), schema=self._layout.schema)
        if self._open is None:
            file_id = new_id()
            local = self._spool.create(f"{file_id}.{self._target.formats.densest.extension}")
            writer = self._target.formats.densest.start(local, self._layout)
            self._open = _Open(
                id=file_id,
                local=local,
                writer=writer,
                partition=partition,
                start=start,
                low=int(offsets[0]),
                high=-1,
                digest=RecordDigest(),
            )
        if self._is_cut:
            records = self._assembler.records(rows, self._assembler.kafka(rows))
            self._open.digest += RecordDigest.of_seen(records)
        self._open.writer.write(rows)
        self._open.high = int(offsets[-1])

    def _is_full(self) -> bool:
        return self._open is not None and self._open.writer.size_bytes >= self._target.target_bytes

    def _end(self, borders: Borders, end: int) -> None:
        """Finish the open file, which covers the offsets up to `end`."""
        target, file = self._target, self._open
        assert file is not None
        spans = borders.within(file.start, end) or (self._hull(file, end),)
        path = f"{self._sources[0].source.file.path.rpartition('/')[0]}/{self._name(file, spans[0].start)}"
        info = file.writer.close(
            origin=self._origin(file.partition, spans),
            path=path,
            partition_value=_time_value(self._sources[0].source.file.partition_values),
            digest=(file.digest if self._is_cut else self._whole_digest()).text,
            recognition=None if self._is_cut else self._recognition(),
            partition=next((place for each in self._sources if (place := each.reader.metadata.place)), None),
        )
        self._open = None
        pass_point(FaultPoint.BEFORE_UPLOAD)
        target.objects.upload(file.local, path, expected=info.size_bytes)
        pass_point(FaultPoint.AFTER_UPLOAD)
        file.local.remove()
        found = read_back(
            target.objects,
            target.formats,
            info,
            topic=target.topic,
            partition=file.partition,
            spans=[(each.start, each.end) for each in spans],
        )
        self.made.append(MadeFile(file=info, partition=file.partition, spans=spans, found=found))

    def _hull(self, file: _Open, end: int) -> KeptSpan:
        """The offsets of a file without borders: of its rows, and of rows that others had deleted beside them.

        No row that comes later can have a lower offset, so all of these rows are known.
        """
        removed = np.concatenate([each.removed(file.partition) for each in self._sources])
        low = min([file.low, *removed.tolist()]) if file.start == FIRST else file.start
        high = max([file.high, *removed.tolist()]) + 1 if end == END else end
        return KeptSpan(start=low, end=high, is_whole=False)

    def _name(self, file: _Open, start: int) -> DataFileName:
        return DataFileName(
            topic=self._target.topic,
            ulid=file.id,
            extension=self._target.formats.densest.extension,
            partition=file.partition,
            start_offset=start,
        )

    def _origin(self, partition: int, spans: Sequence[KeptSpan]) -> SegmentOrigin | None:
        """The range that the footer names. None where the file lacks records of it, or has several ranges."""
        origin = self._sources[0].reader.metadata.origin
        if origin is None or not is_one_range(spans):
            return None
        return SegmentOrigin(
            cluster_id=origin.cluster_id,
            topic=origin.topic,
            topic_id=origin.topic_id,
            partition=partition,
            start_offset=spans[0].start,
            end_offset=spans[0].end,
        )

    def _whole_digest(self) -> RecordDigest:
        return sum((each.digest for each in self._sources), RecordDigest())

    def _recognition(self) -> Recognition | None:
        known = [each.reader.metadata.recognition for each in self._sources if each.is_proven]
        counted = [each for each in known if each is not None]
        return sum(counted, Recognition()) if len(counted) == len(self._sources) else None


def _time_value(values: Sequence[object]) -> int:
    """The time partition, as the file's description wants one. The manifest takes the old files' whole partition."""
    return next((each for each in values if isinstance(each, int)), 0)
