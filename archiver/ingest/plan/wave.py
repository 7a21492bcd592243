"""Which ranges make a wave: fair between topics and partitions, and enough of them to keep every slot at work.

Partitions are whole while there are enough of them; where a few have most of what is left, theirs are cut. Where there
are more partitions than one wave can serve, those that waited longest come first (docs/concepts.md, step 1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Generic, TypeVar

from archiver.ingest.plan.backlog import Backlog, cut, whole
from archiver.ingest.plan.ranges import PlannedRange

Topic = TypeVar("Topic")

PIECES_A_SLOT: Final = 4
"""So many pieces of a cut backlog for each slot: tasks differ in length, and the wave ends with the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """What bounds a wave: tasks that run at once and tasks in all; bytes and pieces of a partition that is cut."""

    slots: int
    most_tasks: int
    task_bytes: int
    tasks_per_partition: int


class WavePlanner(Generic[Topic]):
    """Plans one wave after the other, and remembers whose turn it is."""

    def __init__(self) -> None:
        self._wave = 0
        self._served: Counter[tuple[Topic, int]] = Counter()

    def plan(
        self, backlogs: Mapping[Topic, Sequence[Backlog]], limits: WaveLimits
    ) -> tuple[tuple[Topic, PlannedRange], ...]:
        """The next wave's ranges, in the order in which their tasks should start: the heads of partitions first."""
        self._wave += 1
        chosen = self._in_turn(backlogs)[: limits.most_tasks]
        for topic, backlog in chosen:
            self._served[topic, backlog.partition] = self._wave
        heavy = sum(backlog.size > limits.task_bytes for _, backlog in chosen)
        pieces = _pieces(heavy, limits)
        pieced = [
            [(topic, each) for each in _ranges(backlog, pieces=pieces, piece_bytes=limits.task_bytes)]
            for topic, backlog in chosen
        ]
        return tuple(one for rank in zip_longest(*pieced) for one in rank if one is not None)

    def _in_turn(self, backlogs: Mapping[Topic, Sequence[Backlog]]) -> list[tuple[Topic, Backlog]]:
        """All backlogs: who waited longest first, then one of each topic after the other."""
        by_wave: dict[int, list[tuple[int, Topic, Backlog]]] = defaultdict(list)
        for topic, those in backlogs.items():
            ranks: Counter[int] = Counter()
            for backlog in those:
                served = self._served[topic, backlog.partition]
                by_wave[served].append((ranks[served], topic, backlog))
                ranks[served] += 1
        return [
            (topic, backlog)
            for served in sorted(by_wave)
            for _, topic, backlog in sorted(by_wave[served], key=lambda one: one[0])
        ]


def time_shares(
    planned: Sequence[tuple[Topic, PlannedRange]], backlogs: Mapping[Topic, Sequence[Backlog]], *, slots: int
) -> tuple[float, ...]:
    """The share of a wave's time that each range's task may take, at most 1; together as many as there are slots.

    Half is shared alike, half by estimated bytes: small tasks don't need what is theirs, large ones get further.
    """
    densities = {(topic, each.partition): each.bytes_per_offset for topic, those in backlogs.items() for each in those}
    sizes = [max(1.0, (one.end_offset - one.start_offset) * densities[topic, one.partition]) for topic, one in planned]
    total = sum(sizes)
    return tuple(min(1.0, slots * (0.5 / len(sizes) + 0.5 * size / total)) for size in sizes)


def _pieces(heavy: int, limits: WaveLimits) -> int:
    """Into how many pieces a heavy backlog is cut; 1 where there are enough of them to fill the slots."""
    if not heavy or heavy >= limits.slots:
        return 1
    return max(1, min(limits.tasks_per_partition, PIECES_A_SLOT * limits.slots // heavy))


def _ranges(backlog: Backlog, *, pieces: int, piece_bytes: int) -> tuple[PlannedRange, ...]:
    if pieces == 1 or backlog.size <= piece_bytes:
        return whole(backlog)
    return cut(backlog, pieces=pieces, piece_bytes=piece_bytes)
