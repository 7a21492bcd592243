"""Partitions set back, and lost requests."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.exceptions import CommitFailedException

from catalog.errors import CatalogUnreachable
from catalog.iceberg.append import Attempt
from catalog.model import TranslatedRange
from tests.support.catalog.memory import MemoryCatalog
from tests.support.catalog.staging import StagedRanges, commit_staged, set_offset

PARTITIONS = range(2)
FATES = ("answered", "answer lost", "request lost", "late", "told of a conflict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Archived offsets; partitions set back or right before the commit; fates of its requests."""

    offsets: tuple[int, ...]
    set_back: frozenset[int]
    set_right: frozenset[int]
    fates: tuple[str, ...]
    arrivals: int


SOME = st.frozensets(st.sampled_from(PARTITIONS), max_size=1)
STEPS = st.lists(
    st.builds(
        Step,
        offsets=st.tuples(*[st.integers(0, 2)] * len(PARTITIONS)),
        set_back=SOME,
        set_right=SOME,
        fates=st.lists(st.sampled_from(FATES), max_size=3).map(tuple),
        arrivals=st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)


@dataclass
class World:
    folder: Path
    memory: MemoryCatalog
    staged: StagedRanges = field(default_factory=StagedRanges)
    under_way: list[Attempt] = field(default_factory=list)
    known: dict[str, TranslatedRange] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        for partition, offsets in enumerate(step.offsets):
            if offsets:
                range_ = self.staged.stage(self.folder, partition, offsets)
                self.known[range_.id] = range_
        for partition in step.set_back:
            self.set_back(partition)
        for partition in step.set_right:
            self.set_right(partition)
        fates = list(step.fates)

        def send(attempt: Attempt) -> None:
            for _ in range(step.arrivals):
                self.arrive()
            self.meet(fates.pop(0) if fates else "answered", attempt)

        is_calm = not step.fates and not step.arrivals
        with nullcontext() if is_calm else suppress(CatalogUnreachable):
            done = commit_staged(self.memory, self.staged, send)
            assert {item.partition for item in self.staged.pending(None)} == done.ahead.keys(), "nobody else waits"
            for partition, error in done.ahead.items():
                assert error.context["partition"] == partition
                assert error.context["table_has_until"] < error.context["staged_from"]

    def meet(self, fate: str, attempt: Attempt) -> None:
        match fate:
            case "answered":
                self.memory.apply(attempt)
            case "answer lost":
                self.memory.apply(attempt)
                raise requests.ReadTimeout
            case "request lost":
                raise requests.ConnectionError
            case "late":
                self.under_way.append(attempt)
                raise requests.ReadTimeout
            case _:
                self.memory.apply(attempt)
                raise CommitFailedException

    def arrive(self) -> None:
        if self.under_way:
            late = self.under_way.pop(0)
            with suppress(CommitFailedException):
                self.memory.apply(late)

    def set_back(self, partition: int) -> None:
        """Only if the registry has ranges in the table: doubtful ones begin after them."""
        if any(self.known[value].partition == partition for value in self.staged.landed):
            set_offset(self.memory, partition, 0)

    def set_right(self, partition: int) -> None:
        """To the table's content, as an operator finds it in an earlier metadata file."""
        chain = self.chain(partition)
        if chain:
            set_offset(self.memory, partition, chain[-1][1])

    def chain(self, partition: int) -> list[tuple[int, int]]:
        result = [self.known[Path(path).stem] for path in self.memory.paths()]
        return sorted((item.start_offset, item.end_offset) for item in result if item.partition == partition)


@settings(max_examples=40)  # each makes a table, and commits to it some five times
@given(STEPS)
def test_no_offset_is_skipped_or_doubled(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), MemoryCatalog(Path(folder) / "table"))
        for step in steps:
            world.take(step)
            for partition in PARTITIONS:
                chain = world.chain(partition)
                assert all(before[1] == after[0] for before, after in pairwise([(0, 0), *chain]))
        while world.under_way:
            world.arrive()
        for partition in PARTITIONS:
            world.set_right(partition)
        while world.staged.pending(None):
            assert not commit_staged(world.memory, world.staged).ahead
        assert world.staged.refused == set()
        assert world.staged.landed == world.known.keys()
        for partition in PARTITIONS:
            chain = world.chain(partition)
            offsets = [offset for start, end in chain for offset in range(start, end)]
            assert offsets == list(range(world.staged.ends.get(partition, 0)))
