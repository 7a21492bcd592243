"""Runs of consecutive offsets of the source and their offsets in the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Runs:
    """`counts[i]` records from `sources[i]` on became the records from `targets[i]` on. Both rise strictly."""

    sources: Offsets
    targets: Offsets
    counts: Offsets

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def records(self) -> int:
        return int(self.counts.sum())

    @classmethod
    def of(cls, offsets: Offsets, base: int) -> Self:
        starts = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 2) != 1).astype(np.int64)
        return cls(offsets[starts], starts + base, np.diff(np.append(starts, len(offsets))).astype(np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Runs]) -> Self:
        several = [*parts]
        if not several:
            return cls(*(np.empty(0, np.int64) for _ in range(3)))
        sources, targets, counts = (
            np.concatenate([getattr(part, name) for part in several]) for name in ("sources", "targets", "counts")
        )
        goes_on = (sources[:-1] + counts[:-1] == sources[1:]) & (targets[:-1] + counts[:-1] == targets[1:])
        firsts = np.flatnonzero(np.append([True], ~goes_on)) if len(sources) else np.empty(0, np.int64)
        return cls(sources[firsts], targets[firsts], np.add.reduceat(counts, firsts) if len(firsts) else counts)

    @classmethod
    def from_json(cls, rows: list[list[int]]) -> Self:
        table = np.array(rows, np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    def to_json(self) -> list[list[int]]:
        rows: list[list[int]] = np.stack([self.sources, self.targets, self.counts], axis=1).tolist()
        return rows

    def pieces(self, most: int) -> Iterator[Runs]:
        for start in range(0, len(self), most):
            part = slice(start, start + most)
            yield Runs(self.sources[part], self.targets[part], self.counts[part])

    def place_of(self, offset: int) -> int | None:
        """The target offset of the first record at or after `offset`."""
        index = int(np.searchsorted(self.sources, offset, side="right")) - 1
        if index >= 0 and offset < self.sources[index] + self.counts[index]:
            return int(self.targets[index] + offset - self.sources[index])
        return int(self.targets[index + 1]) if index + 1 < len(self) else None
