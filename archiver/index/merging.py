"""Merges the runs of a full level into one of the next level."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import BadSegment, ObjectMissing, TaskInterrupted
from archiver.index.builder import ENTRY_BYTES, MOST_EXACT, BuildReport
from archiver.index.columns import IndexedColumn
from archiver.index.store import RunStore, leaf_bytes
from archiver.storage.formats import LEAF_ROWS, LeafReader
from archiver.storage.postings import GRANULES, OFFSET, PARTITION, TERM, Mask, merged_postings
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import FAN_OUT, TermRun

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMerge:
    """Exact offsets before `first_offsets`, which are retired, are left out.

    `memory` bounds postings. Levels with more than `most_entries` stay full.
    """

    topic: TopicRow
    registry: Registry
    store: RunStore
    memory: int
    first_offsets: Mapping[int, int]
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
                if not self.registry.index.replace(self.topic, merged, [run.id for run in full]):
                    self.store.delete(merged.path)
                    break
                report.merged += 1
        return has_dropped

    def _full_level(self, column: IndexedColumn) -> list[TermRun]:
        levels = defaultdict[int, list[TermRun]](list)
        for run in self.registry.index.load(self.topic, [column.identity]):
            if run.mapping == column.mapping:
                levels[run.level].append(run)
        full = [levels[level][:FAN_OUT] for level in sorted(levels) if len(levels[level]) >= FAN_OUT]
        return next((runs for runs in full if self._is_small(runs)), [])

    def _is_small(self, runs: Sequence[TermRun]) -> bool:
        return self.most_entries is None or sum(run.entries for run in runs) <= self.most_entries

    def _merged(self, column: IndexedColumn, runs: Sequence[TermRun]) -> TermRun:
        spans: dict[int, tuple[int, int]] = {}
        for partition, start, end in (span for run in runs for span in run.spans):
            low, high = spans.get(partition, (start, end))
            spans[partition] = min(low, start), max(high, end)
        return self.store.write(
            column,
            self._parts(column, runs),
            begun_ms=min(run.begun_ms for run in runs),
            spans=[(partition, *span) for partition, span in spans.items()],
            level=1 + max(run.level for run in runs),
        )

    def _parts(self, column: IndexedColumn, runs: Sequence[TermRun]) -> Iterator[pa.Table]:
        readers = [LeafReader(run.path, run.leaves, run.footer) for run in runs]
        for low, high in self._ranges(runs):
            tables = [
                table for run, reader in zip(runs, readers, strict=True) for table in self._rows(run, reader, low, high)
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
            kept = self._is_kept(rows)
            kept &= True if low is None else terms >= low
            kept &= True if high is None else terms < high
            yield rows.filter(pa.array(kept))

    def _is_kept(self, rows: pa.Table) -> Mask:
        partitions, offsets = rows[PARTITION].to_numpy(), rows[OFFSET].to_numpy()
        kept = np.ones(len(rows), np.bool_)
        for partition, first in self.first_offsets.items():
            kept &= (partitions != partition) | (offsets >= first)
        kept |= pc.is_valid(rows[GRANULES]).to_numpy()
        return kept
