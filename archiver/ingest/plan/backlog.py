"""A partition's backlog: the offsets left to archive, an estimate of their bytes, and how they are cut into ranges.

Bytes are known only once they are fetched. So a backlog is cut by offsets, with an estimate of the bytes per offset. If
a cut falls inside a batch, the task before the cut owns the whole batch (docs/concepts.md, step 1).
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
    """The offsets of a partition that no task has covered yet, as half-open spans in order.

    Usually there is one span. There are several if a task failed or ran out of time, and tasks after it are done.
    `epochs` lie before the offset `follows`.
    """

    partition: int
    spans: tuple[tuple[int, int], ...]
    bytes_per_offset: float
    epochs: EpochsBefore = NO_EPOCHS
    follows: int = -1

    @property
    def offsets(self) -> int:
        """The number of offsets."""
        return sum(end - start for start, end in self.spans)

    @property
    def size(self) -> float:
        """The estimated bytes of these offsets in the log."""
        return self.offsets * self.bytes_per_offset


class BytesPerOffset:
    """Estimates the bytes per offset of a topic's partitions. A later measurement replaces an earlier one."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def learn(self, partition: int, *, offsets: int, size: int) -> None:
        """Take a measurement: this many offsets took this many bytes."""
        if offsets >= LEAST_OFFSETS:
            self._known[partition] = size / offsets

    def lacks(self, partition: int) -> bool:
        """Whether the partition has no measurement of its own."""
        return partition not in self._known

    def of(self, partition: int) -> float:
        """Bytes per offset: the partition's own, else the average of the topic's partitions, else `DEFAULT_BYTES`."""
        if partition in self._known:
            return self._known[partition]
        return sum(self._known.values()) / len(self._known) if self._known else DEFAULT_BYTES


def whole(backlog: Backlog) -> tuple[PlannedRange, ...]:
    """The uncut backlog: one range per span."""
    return tuple(_range(backlog, start, end) for start, end in backlog.spans)


def cut(backlog: Backlog, *, pieces: int, piece_bytes: int) -> tuple[PlannedRange, ...]:
    """Cut the backlog from its start into at most `pieces` ranges of about `piece_bytes` each.

    The offsets after the last range are left for the next wave. If the ranges reach the end, they have the same length.
    """
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
