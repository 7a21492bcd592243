"""Two archivers with any failures."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import requests
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.exceptions import AuthorizationExpiredError, BadRequestError, CommitFailedException, ForbiddenError

from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, CommitOutcome, Committed, OffsetsMoved, Unresolved, commit
from catalog.iceberg.settle import settle
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import MemoryCatalog, span

LANDED: dict[str, type[Exception]] = {
    "answer lost": requests.ReadTimeout,
    "409 after landing": CommitFailedException,
    "400 after landing": BadRequestError,
    "403 after landing": ForbiddenError,
    "419 after landing": AuthorizationExpiredError,
}
FATES = (
    "answered",
    *LANDED,
    "request lost",
    "late",
    "others commit first",
    "another branch moves first",
    "400 before landing",
)
REFUSALS = (BadRequestError, ForbiddenError, AuthorizationExpiredError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One archiver archives this many offsets.

    `fates` are of its requests, `arrivals` the late requests before each. `older`: states by which each load lags
    behind.
    """

    archiver: int
    offsets: int
    fates: tuple[str, ...]
    arrivals: tuple[int, ...]
    older: tuple[int, ...] = ()


STEPS = st.lists(
    st.builds(
        Step,
        archiver=st.integers(0, 1),
        offsets=st.integers(1, 3),
        fates=st.lists(st.sampled_from(FATES), max_size=3).map(tuple),
        arrivals=st.lists(st.integers(0, 2), max_size=3).map(tuple),
        older=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class World:
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

        older = list(step.older)

        def load() -> ArchiveTable:
            self.catalog.older_loads = [older.pop(0)] if older else []
            return self.catalog.load()

        backoff = Backoff(attempts=3, pause=lambda _: None)
        try:
            outcome: CommitOutcome | None = commit(
                load=load, send=send, ranges=ranges, change=None, commit_id=new_id(), backoff=backoff
            )
        except REFUSALS:
            outcome = None  # the ranges stay staged, as if the outcome were not known
        match outcome:
            case Committed():
                self.landed |= {item.id for item in ranges}
                self.staged[step.archiver] = []
            case OffsetsMoved():
                self.settle(step.archiver)
            case Unresolved() | None:
                pass

    def meet(self, fate: str, attempt: Attempt) -> None:
        match fate:
            case "answered":
                self.catalog.apply(attempt)
            case "request lost":
                raise requests.ConnectionError
            case "late":
                self.under_way.append(attempt)
                raise requests.ReadTimeout
            case "400 before landing":
                raise BadRequestError
            case "another branch moves first":
                if self.catalog.metadata.current_snapshot_id is not None:
                    self.catalog.move_branch()
                self.catalog.apply(attempt)
            case _ if fate in LANDED:
                self.catalog.apply(attempt)
                raise LANDED[fate]
            case _:
                rival = prepare(self.catalog.load(), [span(9, 0, 1, with_file=False)], change=None, commit_id=new_id())
                self.catalog.change(*rival.updates)
                self.catalog.apply(attempt)

    def arrive(self) -> None:
        if self.under_way:
            late = self.under_way.pop(0)
            try:
                self.catalog.apply(late)
            except (CommitFailedException, BadRequestError):
                return

    def settle(self, archiver: int) -> None:
        fates = settle(self.catalog.load(), self.staged[archiver])
        self.landed |= {item.range.id for item in fates.landed}
        self.refused |= {item.range.id for item in fates.refused}
        self.staged[archiver] = list(fates.waiting)

    def end(self, archiver: int) -> int:
        if self.staged[archiver]:
            return self.staged[archiver][-1].end_offset
        return self.end_of_table()

    def end_of_table(self) -> int:
        offsets = self.catalog.load().offsets
        return offsets[0].next_offset if 0 in offsets else 0


def beside_others(fate: str, *older: int) -> list[Step]:
    """Another partition moves the table before the attempt; `older` are its later loads."""
    fates = ("others commit first", fate)
    return [Step(archiver=0, offsets=2, fates=fates, arrivals=(), older=(0, 0, *older))]


@given(STEPS)
@example(beside_others("answer lost", 2))
@example(beside_others("400 after landing", 2))
@example(beside_others("400 after landing", 1))
@example(beside_others("late", 2))
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
        chain = sorted((world.known[value].start_offset, world.known[value].end_offset) for value in table)
        offsets = [offset for start, end in chain for offset in range(start, end)]
        assert offsets == list(range(world.end_of_table()))
