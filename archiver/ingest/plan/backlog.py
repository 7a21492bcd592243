"""A partition's backlog cut into ranges for parallel tasks, as a pure decision.

Bytes are known only once they are fetched, so cuts are made by offsets, with an estimate of what an offset takes. Where
a cut falls inside a batch, the task before it owns the whole batch (docs/concepts.md, step 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from archiver.ingest.plan.ranges import PlannedRange

LEAST_BYTES_PER_OFFSET: Final = 1.0
DEFAULT_BYTES: Final = 1024.0
"""The estimate for an offset while nothing is known of a topic."""

LEAST_OFFSETS: Final = 100
"""A range of fewer offsets says little about the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What a partition has to archive: half-open spans of offsets, in order, that no task has covered yet.

    Usually one span; several where tasks behind one that failed or ran out of time have done their part. `last_epoch`
    is the one in which the leader has what lies right before `follows`, -1 where that isn't known.
    """

    partition: int
    spans: tuple[tuple[int, int], ...]
    leader_epoch: int
    bytes_per_offset: float
    last_epoch: int = -1
    follows: int = -1

    @property
    def offsets(self) -> int:
        """How many offsets that are."""
        return sum(end - start for start, end in self.spans)

    @property
    def size(self) -> float:
        """How many bytes of the log that is, by the estimate."""
        return self.offsets * self.bytes_per_offset


class BytesPerOffset:
    """What is known of a topic's partitions. Later knowledge replaces earlier."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def learn(self, partition: int, *, offsets: int, size: int) -> None:
        """Note that so many offsets took so many bytes."""
        if offsets >= LEAST_OFFSETS:
            self._known[partition] = size / offsets

    def lacks(self, partition: int) -> bool:
        """Whether nothing is known of the partition itself."""
        return partition not in self._known

    def of(self, partition: int) -> float:
        """Bytes per offset: the partition's, else what the topic's partitions have on average, else a guess."""
        if partition in self._known:
            return self._known[partition]
        return sum(self._known.values()) / len(self._known) if self._known else DEFAULT_BYTES


def whole(backlog: Backlog) -> tuple[PlannedRange, ...]:
    """The backlog uncut: a range for each span."""
    return tuple(_range(backlog, start, end) for start, end in backlog.spans)


def cut(backlog: Backlog, *, pieces: int, piece_bytes: int) -> tuple[PlannedRange, ...]:
    """At most so many ranges, from the backlog's start on, of about so many bytes each.

    What lies behind the last of them is left for the next wave; where they reach the end, they are of one length.
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
        leader_epoch=backlog.leader_epoch,
        owns_head=start == backlog.spans[0][0],
        last_epoch=backlog.last_epoch if start == backlog.follows else -1,
    )
