"""Builds runs of files that no run covers. A build can end after any file; another one continues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive import file_columns
from archiver.archive.open_file import OpenFile, numbers_or_none
from archiver.archive.plan import TopicSnapshot
from archiver.archive.table_files import TableFile
from archiver.errors import BadSegment, TopicBusy
from archiver.index.claim import taken_for_dead
from archiver.index.columns import IndexedColumn
from archiver.index.store import RunStore
from archiver.storage.postings import Mask, Numbers, TermOffsets, postings_of
from archiver.storage.row_columns import column_by_id
from catalog.errors import RegistryError
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import TermRun
from schema_mapping.columns.fixed import OFFSET_ID, PARTITION_ID
from schema_mapping.errors import ContextError

_LOG: Final = logging.getLogger(__name__)

ENTRY_BYTES: Final = 96
"""About what an entry takes while it is sorted and written."""
_PLACE: Final = frozenset((PARTITION_ID, OFFSET_ID))
MOST_EXACT: Final = {"terms": 64, "bitmap": 8}
"""Offsets of a term in a partition and a run. For more, a bitmap of granules is smaller."""


@dataclass(slots=True, kw_only=True)
class BuildReport:
    """`left` are files that the runs of some column don't cover."""

    files: int = 0
    runs: int = 0
    entries: int = 0
    size_bytes: int = 0
    merged: int = 0
    left: int = 0
    failures: list[ContextError] = field(default_factory=list)


@dataclass(slots=True)
class _Collected:
    parts: list[TermOffsets] = field(default_factory=list)
    entries: int = 0
    runs: list[TermRun] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class IndexBuild:
    """`begun_ms` is a time of Postgres before the snapshot was loaded.

    Records before `first_offsets` are retired, and left out.
    """

    topic: TopicRow
    snapshot: TopicSnapshot
    columns: Sequence[IndexedColumn]
    registry: Registry
    store: RunStore
    memory: int
    begun_ms: int
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    is_over: Callable[[], bool]
    alive: Callable[[], None]
    report: BuildReport = field(default_factory=BuildReport)
    _collected: dict[str, _Collected] = field(default_factory=dict)

    def run(self) -> BuildReport:
        """Index files that aren't covered. Unreadable files stay so, and are in the report.

        Raises RegistryError, StorageError if runs can't be written, and TopicBusy if an erasure took it for dead.
        """
        missing = self._missing()
        self.report.left = len(missing)
        try:
            for place, (file, columns) in enumerate(missing):
                if self.is_over():
                    break
                self.alive()
                is_whole = self._add(file, columns)
                if not is_whole and not place:  # it had all the time of this build
                    self.registry.index.note_cut(self.topic, file.path)
                if self._entries * ENTRY_BYTES >= self.memory:
                    self._register()
            self._register()
        finally:
            self._delete_unregistered()
        return self.report

    def count_left(self) -> None:
        """Call it after runs were dropped."""
        self.report.left = len(self._missing())

    def _delete_unregistered(self) -> None:
        written = [run.path for collected in self._collected.values() for run in collected.runs]
        if not written:
            return
        try:  # a registration whose answer was lost may have succeeded
            registered = {run.path for run in self.registry.index.load(self.topic)}
        except RegistryError as error:
            _LOG.warning("%s: objects of an ended build stay until the next one: %s", self.topic.topic, error)
            return
        self.report.failures += self.store.delete_all(path for path in written if path not in registered)

    @property
    def _entries(self) -> int:
        return sum(collected.entries for collected in self._collected.values())

    def _missing(self) -> list[tuple[TableFile, tuple[IndexedColumn, ...]]]:
        """Files in order of offsets, too large ones last, with the columns that don't cover them."""
        files = self.snapshot.files
        paths = files.columns[file_columns.PATH].to_pylist()
        mappings = {column.identity: column.mapping for column in self.columns}
        covered = self.registry.index.state(self.topic, mappings, paths).files
        needs = [tuple(column for column in self.columns if (column.identity, path) not in covered) for path in paths]
        first = {path: place for place, path in reversed(list(enumerate(paths)))}  # a table may list a file twice
        order = files.columns.select([file_columns.LOW_PARTITION, file_columns.LOW_OFFSET])
        keys = [column.cast(pa.int64()).fill_null(-1).to_numpy() for column in order.columns]
        places = [place for place in np.lexsort(keys[::-1]).tolist() if needs[place] and first[paths[place]] == place]
        cut = self.registry.index.cut(self.topic)
        places.sort(key=lambda place: paths[place] in cut)
        picked = files.pick(np.array(places, np.int64))
        return [(file, needs[place]) for place, file in zip(places, picked, strict=True)]

    def _add(self, file: TableFile, columns: Sequence[IndexedColumn]) -> bool:
        """Read a file. False if it was over before the end of the file."""
        try:
            if not self._read(file, columns):
                return False
        except TopicBusy:
            raise
        except ContextError as error:
            self._leave(error)
            return True
        except (pa.ArrowException, ValueError, TypeError) as error:
            self._leave(BadSegment("the file's values can't be indexed", file=file.path, cause=str(error)))
            return True
        for column in columns:
            self._of(column).paths.append(file.path)
        self.report.files += 1
        self.report.left -= 1
        return True

    def _leave(self, error: ContextError) -> None:
        _LOG.warning("%s: a file is not indexed: %s", self.topic.topic, error)
        self.report.failures.append(error)

    def _read(self, file: TableFile, columns: Sequence[IndexedColumn]) -> bool:
        """Deleted rows count, too. False if it was over before the end."""
        storage = self.snapshot.storage
        segment_format = storage.formats.named(file.format, file.path)
        opened = OpenFile.whole(segment_format, storage.objects, file.path, storage.mappings)
        try:
            needs = frozenset[str]().union(*(column.part for column in columns))
            ids = _PLACE.union(*(column.field_ids(opened.reader.schema) for column in columns))
            for rows in self._rows(opened, ids):
                if self.is_over():
                    return False
                self.alive()
                partitions, offsets = (_numbers(rows, identifier, file) for identifier in (PARTITION_ID, OFFSET_ID))
                is_record = (partitions >= 0) & (offsets >= 0)
                _check_bounds(file, partitions[is_record], offsets[is_record])
                is_record &= _is_left(self.first_offsets, partitions, offsets)
                parts = opened.assembler.as_archived(rows, needs)
                for column in columns:
                    for at, terms in column.terms(rows, parts, storage.mappings):
                        kept = is_record[at]
                        places = at[kept]
                        postings = TermOffsets(terms[kept], partitions[places].astype(np.int32), offsets[places])
                        self._collect(column, postings)
        finally:
            opened.close()
        return True

    def _rows(self, opened: OpenFile, ids: frozenset[int]) -> Iterator[pa.RecordBatch]:
        for block in opened.reader.blocks():
            yield from opened.reader.read(block, ids)

    def _collect(self, column: IndexedColumn, found: TermOffsets) -> None:
        collected = self._of(column)
        if len(found):
            collected.parts.append(found)
            collected.entries += len(found)
        if self._entries * ENTRY_BYTES >= 2 * self.memory:  # a large file becomes several runs
            for large in self.columns:
                self._write(large, is_last=False)

    def _of(self, column: IndexedColumn) -> _Collected:
        return self._collected.setdefault(column.identity, _Collected())

    def _write(self, column: IndexedColumn, *, is_last: bool) -> None:
        collected = self._of(column)
        if not collected.parts and not (is_last and not collected.runs):
            return
        joined = TermOffsets.joined(collected.parts) if collected.parts else None
        collected.parts, collected.entries = [], 0
        parts = [] if joined is None else [postings_of(joined, MOST_EXACT[column.kind])]
        spans = [] if joined is None else joined.spans()
        collected.runs.append(self.store.write(column, parts, begun_ms=self.begun_ms, spans=spans))

    def _register(self) -> None:
        for column in self.columns:
            collected = self._of(column)
            if not collected.paths:
                continue
            self._write(column, is_last=True)
            if not self.registry.index.add(self.topic, collected.runs, collected.paths, build=self.store.build):
                raise taken_for_dead(self.topic)
            self.report.runs += len(collected.runs)
            self.report.entries += sum(run.entries for run in collected.runs)
            self.report.size_bytes += sum(run.size_bytes for run in collected.runs)
            del self._collected[column.identity]


def _numbers(rows: pa.RecordBatch, identifier: int, file: TableFile) -> Numbers:
    column = column_by_id(rows, identifier)
    if column is None:
        raise BadSegment("the file lacks partitions or offsets of its rows", file=file.path)
    return numbers_or_none(column).astype(np.int64)


def _is_left(first_offsets: Mapping[int, int], partitions: Numbers, offsets: Numbers) -> Mask:
    kept = np.ones(len(offsets), np.bool_)
    for partition, first in first_offsets.items():
        kept &= (partitions != partition) | (offsets >= first)
    return kept


def _check_bounds(file: TableFile, partitions: Numbers, offsets: Numbers) -> None:
    """Raise BadSegment for rows outside of the manifest's bounds: searches don't expect them."""
    for numbers, bounds in ((partitions, file.partitions), (offsets, file.offsets)):
        if len(numbers) and bounds is not None and not (bounds.low <= numbers.min() and numbers.max() <= bounds.high):
            raise BadSegment("rows are outside of the bounds that the table states of the file", file=file.path)
