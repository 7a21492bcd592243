"""Builds runs of files that no run covers. A build can end after any file; another one continues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive import file_columns
from archiver.archive.open_file import OpenFile, numbers_or_none
from archiver.archive.plan import TopicSnapshot
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile
from archiver.errors import BadSegment
from archiver.index.columns import IndexedColumn
from archiver.index.store import RunStore
from archiver.storage.postings import Numbers, TermOffsets, postings_of
from catalog.errors import RegistryError
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import TermRun
from schema_mapping import names
from schema_mapping.errors import ContextError

_LOG: Final = logging.getLogger(__name__)

ENTRY_BYTES: Final = 96
"""About what an entry takes while it is sorted and written."""
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
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    runs: list[TermRun] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def widen(self, partitions: Numbers, offsets: Numbers) -> None:
        for partition in np.unique(partitions).tolist():
            inside = offsets[partitions == partition]
            low, high = int(inside.min()), int(inside.max()) + 1
            start, end = self.spans.get(partition, (low, high))
            self.spans[partition] = min(start, low), max(end, high)


@dataclass(slots=True, kw_only=True)
class IndexBuild:
    """`begun_ms` is a time of Postgres before the snapshot was loaded."""

    topic: TopicRow
    snapshot: TopicSnapshot
    columns: Sequence[IndexedColumn]
    registry: Registry
    store: RunStore
    memory: int
    begun_ms: int
    is_over: Callable[[], bool]
    alive: Callable[[], None]
    report: BuildReport = field(default_factory=BuildReport)
    _collected: dict[str, _Collected] = field(default_factory=dict)

    def run(self) -> BuildReport:
        """Index files that aren't covered. Unreadable files stay so, and are in the report.

        Raises RegistryError, and StorageError if runs can't be written.
        """
        missing = self._missing()
        self.report.left = len(missing)
        try:
            for file, columns in missing:
                if self.is_over():
                    break
                self.alive()
                self._add(file, columns)
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
        files = self.snapshot.files
        paths = files.columns[file_columns.PATH].to_pylist()
        mappings = {column.identity: column.mapping for column in self.columns}
        covered = self.registry.index.state(self.topic, mappings, paths).files
        needs = [tuple(column for column in self.columns if (column.identity, path) not in covered) for path in paths]
        first = {path: place for place, path in reversed(list(enumerate(paths)))}  # a table may list a file twice
        order = files.columns.select([file_columns.LOW_PARTITION, file_columns.LOW_OFFSET])
        keys = [column.cast(pa.int64()).fill_null(-1).to_numpy() for column in order.columns]
        places = [place for place in np.lexsort(keys[::-1]).tolist() if needs[place] and first[paths[place]] == place]
        picked = files.pick(np.array(places, np.int64))
        return [(file, needs[place]) for place, file in zip(places, picked, strict=True)]

    def _add(self, file: TableFile, columns: Sequence[IndexedColumn]) -> None:
        try:
            if not self._read(file, columns):
                return
        except ContextError as error:
            self._leave(error)
            return
        except (pa.ArrowException, ValueError, TypeError) as error:
            self._leave(BadSegment("the file's values can't be indexed", file=file.path, cause=str(error)))
            return
        for column in columns:
            self._of(column).paths.append(file.path)
        self.report.files += 1
        self.report.left -= 1

    def _leave(self, error: ContextError) -> None:
        _LOG.warning("%s: a file is not indexed: %s", self.topic.topic, error)
        self.report.failures.append(error)

    def _read(self, file: TableFile, columns: Sequence[IndexedColumn]) -> bool:
        """Deleted rows count, too. False if it was over before the end."""
        storage = self.snapshot.storage
        segment_format = storage.formats.named(file.format, file.path)
        opened = OpenFile.whole(segment_format, storage.objects, file.path, storage.mappings)
        try:
            parts = frozenset[str]().union(*(column.part for column in columns))
            ids = KAFKA_IDS.union(*(column.field_ids(opened.reader.schema) for column in columns))
            for rows in self._rows(opened, ids):
                if self.is_over():
                    return False
                self.alive()
                kafka = opened.assembler.kafka(rows)
                partitions, offsets = (
                    numbers_or_none(kafka.field(name)).astype(np.int64) for name in (names.PARTITION, names.OFFSET)
                )
                is_record = (partitions >= 0) & (offsets >= 0)
                _check_bounds(file, partitions[is_record], offsets[is_record])
                for column in columns:
                    self._of(column).widen(partitions[is_record], offsets[is_record])
                records = opened.assembler.outlines(rows, kafka, parts)
                for column in columns:
                    for at, terms in column.terms(rows, records, storage.mappings):
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
        spans = [(partition, *span) for partition, span in collected.spans.items()]
        collected.runs.append(self.store.write(column, parts, begun_ms=self.begun_ms, spans=spans))

    def _register(self) -> None:
        for column in self.columns:
            collected = self._of(column)
            if not collected.paths:
                continue
            self._write(column, is_last=True)
            self.registry.index.add(self.topic, _spanned(collected), collected.paths)
            self.report.runs += len(collected.runs)
            self.report.entries += sum(run.entries for run in collected.runs)
            self.report.size_bytes += sum(run.size_bytes for run in collected.runs)
            del self._collected[column.identity]


def _spanned(collected: _Collected) -> list[TermRun]:
    """Runs written within a file have only spans of the files before."""
    spans = tuple(sorted((partition, *span) for partition, span in collected.spans.items()))
    return [replace(run, spans=spans) for run in collected.runs]


def _check_bounds(file: TableFile, partitions: Numbers, offsets: Numbers) -> None:
    """Raise BadSegment for rows outside of the manifest's bounds: searches don't expect them."""
    for numbers, bounds in ((partitions, file.partitions), (offsets, file.offsets)):
        if len(numbers) and bounds is not None and not (bounds.low <= numbers.min() and numbers.max() <= bounds.high):
            raise BadSegment("rows are outside of the bounds that the table states of the file", file=file.path)
