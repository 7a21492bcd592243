"""Sorts records by offset, in memory up to a bound, then in sorted runs on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from archiver.archive.offset_order import merge_sorted, offsets_of, split_at_offset
from archiver.archive.spilled_run import SpilledRun

HELD_BYTES = 128 << 20
FAN_IN = 16
"""This many runs of one size are merged into a larger one, which also limits open runs."""
PIECES = 128
"""A run of `held_bytes` is cut into this many pieces."""
LEAST_PIECE = 64 << 10


class ReorderBuffer:
    """Returns sorted batches by offset. Close it."""

    def __init__(self, folder: Path | None = None, *, held_bytes: int = HELD_BYTES, fan_in: int = FAN_IN) -> None:
        """`held_bytes` bounds memory. `folder` is by default the temporary folder."""
        self._folder = folder
        self._held_bytes = held_bytes
        self._piece_bytes = max(LEAST_PIECE, held_bytes // PIECES)
        self._fan_in = fan_in
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._levels: list[list[SpilledRun]] = []

    def __bool__(self) -> bool:
        return bool(self._batches) or any(True for _ in self._runs)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a sorted, nonempty batch. Raises StorageError if the disk is full."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._held_bytes:
            run = self._run(merge_sorted(self._batches))
            self._batches, self._bytes = [], 0
            self._keep(run, 0)

    def take_below(self, frontier: int | None = None) -> Iterator[pa.RecordBatch]:
        """Take records below `frontier`, or all. Exhaust it before adding more."""
        while True:
            runs = tuple(self._runs)
            bound = _bound(runs, frontier)
            ready, self._batches = (self._batches, []) if bound is None else split_at_offset(self._batches, bound)
            for run in runs:
                ready += _taken(run, bound)
            yield from merge_sorted(ready)
            if bound == frontier:
                break
        self._bytes = sum(batch.nbytes for batch in self._batches)

    def close(self) -> None:
        for run in self._runs:
            run.close()
        self._batches, self._levels = [], []

    @property
    def _runs(self) -> Iterator[SpilledRun]:
        return (run for level in self._levels for run in level if run.head is not None)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> SpilledRun:
        return SpilledRun(batches, self._folder, piece_bytes=self._piece_bytes)

    def _keep(self, run: SpilledRun, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        open_runs = [kept for kept in self._levels[level] if kept.head is not None]
        self._levels[level] = [*open_runs, run]
        if len(self._levels[level]) == self._fan_in:
            larger = self._run(_all_of(self._levels[level]))
            self._levels[level] = []
            self._keep(larger, level + 1)


def _bound(runs: Iterable[SpilledRun], frontier: int | None) -> int | None:
    ends = [int(offsets_of(run.head)[-1]) + 1 for run in runs if run.head is not None and run.has_more]
    return min([*ends, *([] if frontier is None else [frontier])], default=None)


def _taken(run: SpilledRun, bound: int | None) -> list[pa.RecordBatch]:
    if run.head is None:
        return []
    ready, rest = ([run.head], []) if bound is None else split_at_offset([run.head], bound)
    if rest:
        (run.head,) = rest
    else:
        run.advance()
    return ready


def _all_of(runs: Sequence[SpilledRun]) -> Iterator[pa.RecordBatch]:
    while any(run.head is not None for run in runs):
        bound = _bound(runs, None)
        yield from merge_sorted([batch for run in runs for batch in _taken(run, bound)])
