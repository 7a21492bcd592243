"""Cut a partition's backlog into ranges of estimated size.

The task before a cut owns a batch that the cut divides (docs/concepts.md, step 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from archiver.ingest.plan.ranges import NO_EPOCHS, EpochsBefore, PlannedRange

LEAST_BYTES_PER_OFFSET: Final = 1.0
DEFAULT_BYTES: Final = 1024.0
"""The estimate while nothing is known of a topic."""

LEAST_OFFSETS: Final = 100
"""A range of fewer offsets says little about the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Half-open spans that no task has covered. `epochs` lie before the offset `follows`."""

    partition: int
    spans: tuple[tuple[int, int], ...]
    bytes_per_offset: float
    epochs: EpochsBefore = NO_EPOCHS
    follows: int = -1

    @property
    def offsets(self) -> int:
        return sum(end - start for start, end in self.spans)

    @property
    def size(self) -> float:
        return self.offsets * self.bytes_per_offset


class BytesPerOffset:
    """Later measurements replace earlier ones."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def learn(self, partition: int, *, offsets: int, size: int) -> None:
        if offsets >= LEAST_OFFSETS:
            self._known[partition] = size / offsets

    def lacks(self, partition: int) -> bool:
        return partition not in self._known

    def of(self, partition: int) -> float:
        if partition in self._known:
            return self._known[partition]
        return sum(self._known.values()) / len(self._known) if self._known else DEFAULT_BYTES


def whole(backlog: Backlog) -> tuple[PlannedRange, ...]:
    return tuple(_range(backlog, start, end) for start, end in backlog.spans)


def cut(backlog: Backlog, *, pieces: int, piece_bytes: int) -> tuple[PlannedRange, ...]:
    step = math.ceil(piece_bytes / max(backlog.bytes_per_offset, LEAST_BYTES_PER_OFFSET))
    needed = math.ceil(backlog.offsets / step)
    if needed <= pieces:
        step = math.ceil(backlog.offsets / needed)
    ranges: list[PlannedRange] = []
    for start, end in backlog.spans:
        for at in range(start, end, step):
            if len(ranges) == pieces:
                return tuple(ranges)
            ranges.append(_range(backlog, at, min(at + step, end)))
    return tuple(ranges)


def _range(backlog: Backlog, start: int, end: int) -> PlannedRange:
    return PlannedRange(
        partition=backlog.partition,
        start_offset=start,
        end_offset=end,
        owns_head=start == backlog.spans[0][0],
        epochs=backlog.epochs if start == backlog.follows else replace(backlog.epochs, at_leader=-1),
    )
