"""Records that were read before their turn: in memory up to a bound, beyond that in sorted runs on disk.

Files that others sorted by another column have every offset anywhere, so all of their rows wait for the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from archiver.archive.merge import merged, offsets_of, split_at
from archiver.archive.spill import Run

HELD_BYTES = 128 << 20
FAN_IN = 16
"""Runs that are merged into a larger one: no more of each size are open at a time."""
PIECES = 128
"""Into so many a run of `held_bytes` is cut."""
LEAST_PIECE = 64 << 10


class Waiting:
    """Sorted batches added in any order, and taken in the order of offsets. Close it in the end."""

    def __init__(self, folder: Path | None = None, *, held_bytes: int = HELD_BYTES, fan_in: int = FAN_IN) -> None:
        """`folder` is where runs are written, if it can be written to."""
        self._folder = folder
        self._held_bytes = held_bytes
        self._piece_bytes = max(LEAST_PIECE, held_bytes // PIECES)
        self._fan_in = fan_in
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._levels: list[list[Run]] = []

    def __bool__(self) -> bool:
        return bool(self._batches) or any(True for _ in self._runs)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a sorted batch that isn't empty. StorageError where there is no room for it."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._held_bytes:
            run = self._run(merged(self._batches))
            self._batches, self._bytes = [], 0
            self._keep(run, 0)

    def below(self, frontier: int | None = None) -> Iterator[pa.RecordBatch]:
        """Take what lies below the offset `frontier`, or everything, in ascending order. Exhaust it before adding."""
        while True:
            runs = tuple(self._runs)
            bound = _bound(runs, frontier)
            ready, self._batches = (self._batches, []) if bound is None else split_at(self._batches, bound)
            for run in runs:
                ready += _taken(run, bound)
            yield from merged(ready)
            if bound == frontier:
                break
        self._bytes = sum(batch.nbytes for batch in self._batches)

    def close(self) -> None:
        """Drop everything."""
        for run in self._runs:
            run.close()
        self._batches, self._levels = [], []

    @property
    def _runs(self) -> Iterator[Run]:
        return (run for level in self._levels for run in level if run.head is not None)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Run:
        return Run(batches, self._folder, piece_bytes=self._piece_bytes)

    def _keep(self, run: Run, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        here = [each for each in self._levels[level] if each.head is not None]
        self._levels[level] = [*here, run]
        if len(self._levels[level]) == self._fan_in:
            larger = self._run(_all_of(self._levels[level]))
            self._levels[level] = []
            self._keep(larger, level + 1)


def _bound(runs: Iterable[Run], frontier: int | None) -> int | None:
    """Up to where the heads of the runs are all there is; None where there is no bound at all."""
    ends = [int(offsets_of(run.head)[-1]) + 1 for run in runs if run.head is not None and run.has_more]
    return min([*ends, *([] if frontier is None else [frontier])], default=None)


def _taken(run: Run, bound: int | None) -> list[pa.RecordBatch]:
    """What of a run's head lies below the bound; the run goes on to its next batch where that is all of it."""
    if run.head is None:
        return []
    ready, rest = ([run.head], []) if bound is None else split_at([run.head], bound)
    if rest:
        (run.head,) = rest
    else:
        run.advance()
    return ready


def _all_of(runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
    """Everything in these runs, in ascending order."""
    while any(run.head is not None for run in runs):
        bound = _bound(runs, None)
        yield from merged([batch for run in runs for batch in _taken(run, bound)])
