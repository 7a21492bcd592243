"""The order of found records, while further files are still being read.

By time, topic, partition and offset. No two records are equal, so a search can continue after any record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from archiver.errors import ReplayError
from archiver.find.block_matches import BlockMatches, MatchedBlock

Numbers = npt.NDArray[np.int64]
MOST_WAITING: Final = 4_000_000
"""Matches that wait in memory for records of other files, at 48 bytes each."""
_TRIMMED: Final = 65_536
_KEYS: Final = 4


@dataclass(frozen=True, slots=True, order=True)
class SortPlace:
    """Time and offset are negated if the newest comes first."""

    time: int
    topic: int
    partition: int
    offset: int


@dataclass(slots=True)
class OrderedMatches:
    """Sorted keys, and each match's block and position in it."""

    keys: Numbers
    blocks: Numbers
    positions: Numbers
    start: int = 0

    def __len__(self) -> int:
        return len(self.blocks) - self.start

    def part(self, start: int, end: int) -> OrderedMatches:
        return OrderedMatches(self.keys[:, start:end], self.blocks[start:end], self.positions[start:end])


@dataclass(slots=True)
class PendingMatches:
    """Holds a match back while a record of another file may come before it.

    Keeps the first `limit` matches after the place `after`.
    """

    oldest_first: bool
    limit: int | None = None
    after: SortPlace | None = None
    blocks: list[MatchedBlock] = field(default_factory=list)
    _runs: list[OrderedMatches] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, matches: BlockMatches, topic: int) -> None:
        """Raise ReplayError if too many matches wait."""
        sign = 1 if self.oldest_first else -1
        keys = np.stack(
            [sign * matches.times, np.full(len(matches), topic), matches.partitions, sign * matches.offsets]
        )
        order = np.lexsort(keys[::-1])
        run = OrderedMatches(keys[:, order], np.full(len(matches), len(self.blocks)), matches.positions[order])
        if self.after is not None:
            run = _cut(run, int(_is_after(run.keys, self.after).sum()), from_end=True)
        if not len(run):
            return
        self.blocks.append(matches.matched)
        self._runs.append(run)
        if self.limit is not None and len(self) > self.limit + _TRIMMED:
            self._runs = [_cut(_joined(self._runs), self.limit)]
        if len(self) > MOST_WAITING:
            raise ReplayError(
                "too many records match to be sorted by time in memory. Set --limit, narrow the search with --from and"
                " --to, or read the records in order of offset: archiver replay TOPIC --where …",
                waiting=len(self),
            )

    def ready(self, bound: int | None) -> OrderedMatches:
        """Take the matches before the time `bound`, negated if the newest comes first; all without one."""
        parts = []
        for run in self._runs:
            end = run.keys.shape[1] if bound is None else int(np.searchsorted(run.keys[0], bound))
            if end > run.start:
                parts.append(
                    OrderedMatches(
                        run.keys[:, run.start : end], run.blocks[run.start : end], run.positions[run.start : end]
                    )
                )
                run.start = end
        self._runs = [run for run in self._runs if len(run)]
        return _joined(parts)


def place_of(run: OrderedMatches, index: int) -> SortPlace:
    return SortPlace(*(int(key) for key in run.keys[:, index]))


def _joined(runs: Sequence[OrderedMatches]) -> OrderedMatches:
    if not runs:
        return OrderedMatches(np.empty((_KEYS, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    keys = np.concatenate([run.keys[:, run.start :] for run in runs], axis=1)
    blocks = np.concatenate([run.blocks[run.start :] for run in runs])
    positions = np.concatenate([run.positions[run.start :] for run in runs])
    order = np.lexsort(keys[::-1])
    return OrderedMatches(keys[:, order], blocks[order], positions[order])


def _cut(run: OrderedMatches, count: int, *, from_end: bool = False) -> OrderedMatches:
    kept = slice(run.keys.shape[1] - count, None) if from_end else slice(0, count)
    return OrderedMatches(run.keys[:, kept], run.blocks[kept], run.positions[kept])


def _is_after(keys: Numbers, place: SortPlace) -> npt.NDArray[np.bool_]:
    is_after = np.zeros(keys.shape[1], np.bool_)
    equal = np.ones(keys.shape[1], np.bool_)
    for key, value in zip(keys, (place.time, place.topic, place.partition, place.offset), strict=True):
        is_after |= equal & (key > value)
        equal &= key == value
    return is_after
