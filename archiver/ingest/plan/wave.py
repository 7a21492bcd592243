"""Choose a wave's ranges: fair to topics and partitions, enough for all slots (docs/concepts.md, step 1)."""

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
"""A backlog is cut into this many pieces per slot: tasks differ in length, and the wave ends with the last one."""


SMALL_BYTES: Final = 256.0 * 1024
"""A range of so many estimated bytes is done in less time than it takes to start a task for it."""

MOST_TOGETHER: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """`slots` tasks run at once, `most_tasks` in all.

    `tasks_per_partition` and `task_bytes` bound a cut partition's ranges.
    """

    slots: int
    most_tasks: int
    task_bytes: int
    tasks_per_partition: int


class WavePlanner(Generic[Topic]):
    def __init__(self) -> None:
        self._wave = 0
        self._served: Counter[tuple[Topic, int]] = Counter()

    def plan(
        self, backlogs: Mapping[Topic, Sequence[Backlog]], limits: WaveLimits
    ) -> tuple[tuple[Topic, PlannedRange], ...]:
        """In start order: each partition's first range first."""
        self._wave += 1
        chosen = self._in_turn(backlogs)[: limits.most_tasks]
        for topic, backlog in chosen:
            self._served[topic, backlog.partition] = self._wave
        heavy = sum(backlog.size > limits.task_bytes for _, backlog in chosen)
        pieces = _pieces(heavy, limits)
        pieced = [
            [(topic, range_) for range_ in _ranges(backlog, pieces=pieces, piece_bytes=limits.task_bytes)]
            for topic, backlog in chosen
        ]
        return tuple(piece for rank in zip_longest(*pieced) for piece in rank if piece is not None)

    def _in_turn(self, backlogs: Mapping[Topic, Sequence[Backlog]]) -> list[tuple[Topic, Backlog]]:
        by_wave: dict[int, list[tuple[int, Topic, Backlog]]] = defaultdict(list)
        for topic, topic_backlogs in backlogs.items():
            ranks: Counter[int] = Counter()
            for backlog in topic_backlogs:
                served = self._served[topic, backlog.partition]
                by_wave[served].append((ranks[served], topic, backlog))
                ranks[served] += 1
        return [
            (topic, backlog)
            for served in sorted(by_wave)
            for _, topic, backlog in sorted(by_wave[served], key=lambda entry: entry[0])
        ]


def time_shares(
    planned: Sequence[tuple[Topic, PlannedRange]], backlogs: Mapping[Topic, Sequence[Backlog]], *, slots: int
) -> tuple[float, ...]:
    """Shares of the wave's time: at most 1, with a sum of `slots`.

    Half is equal, half by estimated bytes.
    """
    sizes = [max(1.0, size) for size in _sizes(planned, backlogs)]
    total = sum(sizes)
    return tuple(min(1.0, slots * (0.5 / len(sizes) + 0.5 * size / total)) for size in sizes)


def small_together(
    planned: Sequence[tuple[Topic, PlannedRange]], backlogs: Mapping[Topic, Sequence[Backlog]], *, slots: int
) -> tuple[tuple[int, ...], ...]:
    """Group small ranges for one task, as indexes in `planned`, leaving enough for every slot."""
    sizes = _sizes(planned, backlogs)
    small = [index for index, size in enumerate(sizes) if size <= SMALL_BYTES]
    step = max(1, min(MOST_TOGETHER, len(small) // (PIECES_A_SLOT * slots)))
    groups = [tuple(small[at : at + step]) for at in range(0, len(small), step)]
    return tuple(sorted([*groups, *((index,) for index, size in enumerate(sizes) if size > SMALL_BYTES)]))


def _sizes(planned: Sequence[tuple[Topic, PlannedRange]], backlogs: Mapping[Topic, Sequence[Backlog]]) -> list[float]:
    densities = {
        (topic, backlog.partition): backlog.bytes_per_offset
        for topic, topic_backlogs in backlogs.items()
        for backlog in topic_backlogs
    }
    return [(range_.end_offset - range_.start_offset) * densities[topic, range_.partition] for topic, range_ in planned]


def _pieces(heavy: int, limits: WaveLimits) -> int:
    if not heavy or heavy >= limits.slots:
        return 1
    return max(1, min(limits.tasks_per_partition, PIECES_A_SLOT * limits.slots // heavy))


def _ranges(backlog: Backlog, *, pieces: int, piece_bytes: int) -> tuple[PlannedRange, ...]:
    if pieces == 1 or backlog.size <= piece_bytes:
        return whole(backlog)
    return cut(backlog, pieces=pieces, piece_bytes=piece_bytes)
