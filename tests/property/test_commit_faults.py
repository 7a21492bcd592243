"""Two archivers, any order of failures: every offset is in the table once, and nobody believes otherwise."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import requests
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.exceptions import CommitFailedException

from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.commit import Backoff, Committed, Moved, Unresolved, commit
from catalog.iceberg.settle import settle
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import MemoryCatalog, span

FATES = ("answered", "answer lost", "request lost", "late", "told of a conflict", "others commit first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One archiver archives so many offsets; the fates of its requests; which late requests arrive before each."""

    archiver: int
    offsets: int
    fates: tuple[str, ...]
    arrivals: tuple[int, ...]


STEPS = st.lists(
    st.builds(
        Step,
        archiver=st.integers(0, 1),
        offsets=st.integers(1, 3),
        fates=st.lists(st.sampled_from(FATES), max_size=3).map(tuple),
        arrivals=st.lists(st.integers(0, 2), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class World:
    """The catalog, requests still under way, and what each archiver has staged and believes."""

    catalog: MemoryCatalog
    under_way: list[Attempt] = field(default_factory=list)
    staged: dict[int, list[TranslatedRange]] = field(default_factory=lambda: {0: [], 1: []})
    known: dict[str, TranslatedRange] = field(default_factory=dict)
    landed: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def take(self, step: Step) -> None:
        self.settle(step.archiver)
        end = self.end(step.archiver)
        fresh = span(0, end, end + step.offsets)
        self.known[fresh.id] = fresh
        self.staged[step.archiver].append(fresh)
        ranges = tuple(self.staged[step.archiver])
        fates, arrivals = list(step.fates), list(step.arrivals)

        def send(attempt: Attempt) -> None:
            for _ in range(arrivals.pop(0) if arrivals else 0):
                self.arrive()
            self.meet(fates.pop(0) if fates else "answered", attempt)

        backoff = Backoff(attempts=2, pause=lambda _: None)
        outcome = commit(
            load=self.catalog.load, send=send, ranges=ranges, change=None, commit_id=new_id(), backoff=backoff
        )
        match outcome:
            case Committed():
                self.landed |= {one.id for one in ranges}
                self.staged[step.archiver] = []
            case Moved():
                self.settle(step.archiver)
            case Unresolved():
                pass

    def meet(self, fate: str, attempt: Attempt) -> None:
        match fate:
            case "answered":
                self.catalog.apply(attempt)
            case "answer lost":
                self.catalog.apply(attempt)
                raise requests.ReadTimeout
            case "request lost":
                raise requests.ConnectionError
            case "late":
                self.under_way.append(attempt)
                raise requests.ReadTimeout
            case "told of a conflict":
                self.catalog.apply(attempt)
                raise CommitFailedException
            case _:
                others = prepare(self.catalog.load(), [span(9, 0, 1, with_file=False)], change=None, commit_id=new_id())
                self.catalog.change(*others.updates)
                self.catalog.apply(attempt)

    def arrive(self) -> None:
        if self.under_way:
            late = self.under_way.pop(0)
            try:
                self.catalog.apply(late)
            except CommitFailedException:
                return

    def settle(self, archiver: int) -> None:
        fates = settle(self.catalog.load(), self.staged[archiver])
        self.landed |= {one.range.id for one in fates.landed}
        self.refused |= {one.range.id for one in fates.refused}
        self.staged[archiver] = list(fates.waiting)

    def end(self, archiver: int) -> int:
        if self.staged[archiver]:
            return self.staged[archiver][-1].end_offset
        return self.end_of_table()

    def end_of_table(self) -> int:
        offsets = self.catalog.load().offsets
        return offsets[0].next_offset if 0 in offsets else 0


@given(STEPS)
def test_every_offset_is_in_the_table_once(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(MemoryCatalog(Path(folder)))
        for step in steps:
            world.take(step)
        while world.under_way:
            world.arrive()
        for archiver in (0, 1):
            world.settle(archiver)
        table = [Path(path).stem for path in world.catalog.paths()]
        assert world.landed <= set(table)
        assert world.refused.isdisjoint(table)
        chain = sorted((world.known[one].start_offset, world.known[one].end_offset) for one in table)
        offsets = [offset for start, end in chain for offset in range(start, end)]
        assert offsets == list(range(world.end_of_table()))
