"""Merges the runs of a full level into one of the next level."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.archive.table_files import TableFile
from archiver.errors import BadSegment, ObjectMissing, TaskInterrupted
from archiver.index.builder import ENTRY_BYTES, MOST_EXACT, BuildReport
from archiver.index.columns import IndexedColumn
from archiver.index.store import RunColumn, RunStore, leaf_bytes
from archiver.storage.formats import LEAF_ROWS, LeafReader
from archiver.storage.postings import GRANULES, TERM, OffsetSpans, left_without, merged_postings
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import FAN_OUT, TermRun

_LOG: Final = logging.getLogger(__name__)
_FAR: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMerge:
    """Offsets that are `gone`, such as retired ones, are left out.

    `memory` bounds postings. Levels with more than `most_entries` stay full.
    """

    topic: TopicRow
    registry: Registry
    store: RunStore
    memory: int
    gone: Mapping[int, OffsetSpans]
    most_entries: int | None = None
    is_over: Callable[[], bool]
    alive: Callable[[], None]

    def run(self, columns: Sequence[IndexedColumn], report: BuildReport) -> bool:
        """Merge until no level is full, or it is over. Raises StorageError and RegistryError.

        Returns whether unreadable runs were dropped, so that files aren't covered any more.
        """
        has_dropped = False
        for column in columns:
            while not self.is_over() and (full := self._full_level(column)):
                if not self.registry.index.begin_merge(self.topic, full, build=self.store.build):
                    break
                try:
                    merged = self._merged(column, full)
                except TaskInterrupted:
                    return has_dropped
                except (ObjectMissing, BadSegment) as error:
                    unreadable = [run.id for run in full if run.path == error.context.get("file")]
                    if not unreadable:
                        raise
                    _LOG.warning("%s: a run of the index is built again: %s", self.topic.topic, error)
                    report.failures.append(error)
                    self.registry.index.drop(self.topic, unreadable)
                    has_dropped = True
                    continue
                if not self._replace(merged, full):
                    break
                report.merged += 1
        return has_dropped

    def trim(self, run: TermRun, files: Iterable[TableFile], *, begun_ms: int) -> bool:
        """Write a run again without the offsets that are `gone`, and without granules that have one of these.

        The records had left the table by `begun_ms`. Only the table's `files` stay covered, without these: if the run
        has granules, files with an offset in a granule of which some are gone; and files with delete files and maybe
        rows at gone offsets, since a deletion can be undone. Returns whether it took the place of the run.

        Raises StorageError, and RegistryError.
        """
        if not self.registry.index.begin_merge(self.topic, [run], build=self.store.build):
            return False
        has_bitmaps: list[bool] = []

        def left(rows: pa.Table) -> pa.Table:
            has_bitmaps.append(rows[GRANULES].null_count < len(rows))
            return left_without(rows, self.gone, is_strict=True)

        trimmed = replace(self._merged(run, [run], left), begun_ms=begun_ms)
        borders = {partition: spans.border_granules() for partition, spans in self.gone.items()}
        cut = borders if any(has_bitmaps) else {}
        kept = [
            file.path
            for file in files
            if not (_may_meet(file, cut) or (file.has_deletes and _may_meet(file, self.gone)))
        ]
        return self._replace(trimmed, [run], kept)

    def _replace(self, merged: TermRun, runs: Sequence[TermRun], kept: Sequence[str] | None = None) -> bool:
        ids = [run.id for run in runs]
        is_done = self.registry.index.replace(self.topic, merged, ids, build=self.store.build, kept=kept)
        if not is_done:
            self.store.delete(merged.path)
        return is_done

    def _full_level(self, column: IndexedColumn) -> list[TermRun]:
        levels = defaultdict[int, list[TermRun]](list)
        for run in self.registry.index.load(self.topic, [column.identity]):
            if run.mapping == column.mapping:
                levels[run.level].append(run)
        full = [levels[level][:FAN_OUT] for level in sorted(levels) if len(levels[level]) >= FAN_OUT]
        return next((runs for runs in full if self._is_small(runs)), [])

    def _is_small(self, runs: Sequence[TermRun]) -> bool:
        return self.most_entries is None or sum(run.entries for run in runs) <= self.most_entries

    def _merged(
        self, column: RunColumn, runs: Sequence[TermRun], left: Callable[[pa.Table], pa.Table] | None = None
    ) -> TermRun:
        spans: dict[int, tuple[int, int]] = {}
        for partition, start, end in (span for run in runs for span in run.spans):
            low, high = spans.get(partition, (start, end))
            spans[partition] = min(low, start), max(high, end)
        return self.store.write(
            column,
            self._parts(column, runs, left or partial(left_without, gone=self.gone)),
            begun_ms=min(run.begun_ms for run in runs),
            spans=[(partition, *span) for partition, span in spans.items()],
            level=max(run.level for run in runs) + (len(runs) > 1),
        )

    def _parts(
        self, column: RunColumn, runs: Sequence[TermRun], left: Callable[[pa.Table], pa.Table]
    ) -> Iterator[pa.Table]:
        readers = [LeafReader(run.path, run.leaves, run.footer) for run in runs]
        for low, high in self._ranges(runs):
            tables = [
                left(table)
                for run, reader in zip(runs, readers, strict=True)
                for table in self._rows(run, reader, low, high)
            ]
            if tables:
                part = merged_postings(tables, MOST_EXACT[column.kind])
                if part.num_rows:
                    yield part

    def _ranges(self, runs: Sequence[TermRun]) -> Iterator[tuple[int | None, int | None]]:
        most = max(1, self.memory // ENTRY_BYTES // LEAF_ROWS - len(runs))
        firsts = np.sort(np.concatenate([run.leaves.numbers[:, 0] for run in runs]))
        borders = np.unique(firsts[most::most]).tolist()
        yield from zip([None, *borders], [*borders, None], strict=True)

    def _rows(self, run: TermRun, reader: LeafReader, low: int | None, high: int | None) -> Iterator[pa.Table]:
        firsts = run.leaves.numbers[:, 0]
        start = 0 if low is None else run.leaves.of_term(low).start
        end = len(firsts) if high is None else int(np.searchsorted(firsts, high, "left"))
        for number in range(start, end):
            self.alive()
            if self.is_over():
                raise TaskInterrupted("a merge of the index ended early", topic=self.topic.topic)
            _, begin, size, _ = run.leaves.row(number)
            rows = reader.rows(number, leaf_bytes(self.store.objects, run.path, begin, size))
            terms = rows[TERM].to_numpy()
            kept = np.ones(len(terms), np.bool_)
            kept &= True if low is None else terms >= low
            kept &= True if high is None else terms < high
            yield rows.filter(pa.array(kept))


def _may_meet(file: TableFile, offsets: Mapping[int, OffsetSpans]) -> bool:
    """Whether a file may have rows at these offsets."""
    within, bounds = file.partitions, file.offsets
    low, high = (0, _FAR) if bounds is None else (bounds.low, bounds.high)
    return any(
        (within is None or within.low <= partition <= within.high)
        and bool(spans.meet(np.array([low]), np.array([high + 1]))[0])
        for partition, spans in offsets.items()
    )
