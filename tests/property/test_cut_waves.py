"""Two archivers cut a partition.

Log, tasks and fence are short models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from archiver.ingest.plan.backlog import Backlog
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.plan.wave import WaveLimits, WavePlanner
from archiver.ingest.topic.finished_ranges import FinishedRanges
from catalog.model import TranslatedRange
from tests.support.catalog.memory import span


@dataclass(frozen=True)
class Batch:
    """Both offsets included."""

    base: int
    last: int


@st.composite
def logs(draw: st.DrawFn) -> tuple[Batch, ...]:
    batches: list[Batch] = []
    offset = 0
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=40)):
        batches.append(Batch(offset + gap, offset + gap + length - 1))
        offset = batches[-1].last + 1
    return tuple(batches)


@dataclass
class World:
    log: tuple[Batch, ...]
    end: int = 0
    accepted: list[TranslatedRange] = field(default_factory=list)
    refused: list[TranslatedRange] = field(default_factory=list)
    held: dict[str, list[Batch]] = field(default_factory=dict)

    @property
    def log_end(self) -> int:
        return self.log[-1].last + 1

    def stage(self, ranges: tuple[TranslatedRange, ...]) -> None:
        for item in ranges:
            if item.start_offset == self.end:
                self.accepted.append(item)
                self.end = item.end_offset
            else:
                self.refused.append(item)

    def task(self, planned: PlannedRange, batches: int, file_every: int) -> tuple[TranslatedRange, ...]:
        """A task that stops after some batches (0: never starts), with a file for every `file_every`."""
        head = [item for item in self.log if item.base < planned.start_offset <= item.last]
        owned = [item for item in self.log if planned.start_offset <= item.base < planned.end_offset]
        begin = planned.start_offset
        if head and planned.owns_head:
            owned = head + owned
        elif head:
            begin = head[0].last + 1
        complete = batches >= len(owned)
        taken = owned[:batches]
        reached = taken[-1].last + 1 if taken else begin
        end = max(reached, planned.end_offset) if complete and batches else reached
        edges = [begin, *(item.last + 1 for item in taken[file_every - 1 : -1 : file_every]), end]
        ranges = []
        for start, stop in pairwise(edges):
            if start < stop:
                ranges.append(span(0, start, stop))
                self.held[ranges[-1].id] = [item for item in taken if start <= max(item.base, begin) < stop]
        return tuple(ranges)


class Archiver:
    def __init__(self, world: World, limits: WaveLimits) -> None:
        self._world = world
        self._limits = limits
        self._planner = WavePlanner[str]()
        self._finished = FinishedRanges(0, lambda index, later: True)
        self._running: list[PlannedRange] = []

    def step(self, which: int, batches: int, file_every: int) -> None:
        if not self._running:
            self._world.stage(self._finished.restart(self._world.end))
            if spans := self._finished.spans(self._world.log_end):
                backlog = Backlog(partition=0, spans=spans, bytes_per_offset=1.0)
                self._running = [value for _, value in self._planner.plan({"t": [backlog]}, self._limits)]
            return
        planned = self._running.pop(which % len(self._running))
        self._world.stage(self._finished.push(self._world.task(planned, batches, file_every)))

    def finish(self) -> None:
        self._world.stage(self._finished.leftover())


STEPS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(0, 6), st.integers(1, 4)), max_size=60)


@given(log=logs(), steps=STEPS, slots=st.integers(2, 4), task_bytes=st.integers(1, 60))
def test_every_batch_is_taken_once(
    log: tuple[Batch, ...], steps: list[tuple[int, int, int, int]], slots: int, task_bytes: int
) -> None:
    world = World(log)
    limits = WaveLimits(slots=slots, most_tasks=100, task_bytes=task_bytes, tasks_per_partition=16)
    archivers = [Archiver(world, limits), Archiver(world, limits)]
    for who, which, batches, file_every in steps:
        archivers[who].step(which, batches, file_every)
    archivers[1].finish()
    for _ in range(400):
        if world.end >= world.log_end:
            break
        archivers[0].step(0, 1_000, 3)
    check(world)


@given(log=logs(), steps=STEPS, slots=st.integers(2, 4), task_bytes=st.integers(1, 60))
def test_one_archiver_does_nothing_twice(
    log: tuple[Batch, ...], steps: list[tuple[int, int, int, int]], slots: int, task_bytes: int
) -> None:
    """Ranges behind a gap wait for it, and nothing is refused."""
    world = World(log)
    archiver = Archiver(world, WaveLimits(slots=slots, most_tasks=100, task_bytes=task_bytes, tasks_per_partition=16))
    for _, which, batches, file_every in (*steps, *[(0, 1, 1_000, 3)] * 400):
        archiver.step(which, batches, file_every)
    check(world)
    assert world.refused == []
    archiver.finish()
    assert world.refused == []


def check(world: World) -> None:
    assert world.end == world.log_end
    for before, after in pairwise(world.accepted):
        assert before.end_offset == after.start_offset
    assert [batch for item in world.accepted for batch in world.held[item.id]] == list(world.log)
