"""Write a group's merged rows to new files, upload them and read them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.mappings import KnownMappings
from archiver.archive.offset_order import misplaced, offsets_of
from archiver.errors import UpkeepError
from archiver.rewrite.rewritten_file import RewrittenFile
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool import TaskSpool
from archiver.upkeep.compact.borders import END, FIRST, Borders, KeptSpan
from archiver.upkeep.compact.choice import FileGroup
from archiver.upkeep.compact.open_files import FilesByPartition, Making, OneFile, OpenFiles
from archiver.upkeep.compact.read_back import FoundSpan, read_back
from archiver.upkeep.compact.source_rows import ROW, SourceRows
from archiver.upkeep.compact.target import CompactTarget
from catalog.model import DataFileInfo

_UNNAMED: Final = "a file that is being written"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """Files of several table partitions may share spans."""

    file: DataFileInfo
    partition: int
    spans: tuple[KeptSpan, ...]
    found: tuple[FoundSpan, ...]


@dataclass(slots=True, kw_only=True)
class _Open:
    files: OpenFiles
    partition: int
    start: int
    low: int
    high: int


class NewFiles:
    """Cut or mixed groups become files of the target size with computed digests.

    Other groups become one file with the digest of the old files.
    """

    def __init__(
        self,
        target: CompactTarget,
        spool: TaskSpool,
        layout: SegmentLayout,
        mappings: KnownMappings,
        sources: Sequence[SourceRows],
        *,
        group: FileGroup,
    ) -> None:
        self._target = target
        self._spool = spool
        self._layout = layout
        self._sources = sources
        self._group = group
        self._assembler = Assembler(_UNNAMED, layout.schema, mappings)
        self._open: _Open | None = None
        self._cut_at: int | None = None
        self.made: list[MadeFile] = []

    def write(self, partition: int, batches: Iterator[pa.RecordBatch], borders: Borders) -> None:
        """Raise UpkeepError and StorageError."""
        start, last = FIRST, -1
        try:
            for batch in batches:
                last = self._checked(batch, last, partition)
                for piece in self._pieces(batch):
                    low = int(offsets_of(piece)[0])
                    if self._open is not None and self._cut_at is not None and low >= self._cut_at:
                        start, self._cut_at = self._cut_at, None
                        self._end(self._open, borders, start)
                    self._append(piece, partition, start)
                    if self._cut_at is None and self._open is not None and self._open.files.is_full():
                        self._cut_at = borders.cut(int(offsets_of(piece)[-1]) + 1)
            self._cut_at = None
            if self._open is not None:
                self._end(self._open, borders, END)
        except BaseException:
            if self._open is not None:
                self._open.files.abort()
            raise

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0 if self._cut_at is None else int(np.searchsorted(offsets_of(batch), self._cut_at))
        if at:
            yield batch.slice(0, at)
        if at < batch.num_rows:
            yield batch.slice(at)

    def _checked(self, batch: pa.RecordBatch, last: int, partition: int) -> int:
        fault = misplaced(batch, last)
        if fault is not None:
            raise UpkeepError(f"{fault[0]}. The files stay as they are", partition=partition, offset=fault[1])
        return int(offsets_of(batch)[-1])

    def _append(self, piece: pa.RecordBatch, partition: int, start: int) -> None:
        offsets = offsets_of(piece)
        rows = pa.RecordBatch.from_arrays(piece.column(ROW).flatten(), schema=self._layout.schema)
        if self._open is None:
            self._open = _Open(
                files=self._started(partition), partition=partition, start=start, low=int(offsets[0]), high=-1
            )
        self._open.files.write(rows)
        self._open.high = int(offsets[-1])

    def _started(self, partition: int) -> OpenFiles:
        making = Making(
            target=self._target,
            spool=self._spool,
            layout=self._layout,
            assembler=self._assembler,
            sources=self._sources,
            partition=partition,
        )
        if self._group.is_moved:
            assert self._target.places is not None
            return FilesByPartition(making, self._target.places)
        return OneFile(making, is_alone=not (self._group.is_cut or self._group.is_mixed))

    def _end(self, ending: _Open, borders: Borders, end: int) -> None:
        spans = borders.within(ending.start, end) or (self._hull(ending, end),)
        done = [(file.info, self._uploaded(file, ending, spans)) for file in ending.files.finish(spans)]
        self._open = None
        missed = [not any(entries[index].rows for _, entries in done) for index in range(len(spans))]
        for number, (info, entries) in enumerate(done):
            # A span without a row needs a file, too: the first has it.
            indexes = [index for index, entry in enumerate(entries) if entry.rows or (number == 0 and missed[index])]
            self.made.append(
                MadeFile(
                    file=info,
                    partition=ending.partition,
                    spans=tuple(spans[index] for index in indexes),
                    found=tuple(entries[index] for index in indexes),
                )
            )

    def _uploaded(self, file: RewrittenFile, of: _Open, spans: Sequence[KeptSpan]) -> tuple[FoundSpan, ...]:
        info = file.upload()
        return read_back(self._target.files, info, of.partition, [(span.start, span.end) for span in spans])

    def _hull(self, of: _Open, end: int) -> KeptSpan:
        """Includes deleted rows beside the file's."""
        removed = np.concatenate([source.removed(of.partition) for source in self._sources])
        low = min([of.low, *removed.tolist()]) if of.start == FIRST else of.start
        high = max([of.high, *removed.tolist()]) + 1 if end == END else end
        return KeptSpan(start=low, end=high, is_whole=False)
