"""A journal whose old commits are merged reads the same before, after, and wherever a merge is interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from archiver.errors import BadSegment, StorageError, StorageUnavailable
from archiver.storage import journal_commits
from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import JournalCommits
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.current_ranges import current_ranges
from catalog.errors import RegistryOutdated
from catalog.iceberg.settle import Landed, Settled
from catalog.journal_entries import JournaledCommit
from catalog.model import TopicRow, TranslatedRange, VersionRecord, file_name
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import Registry
from schema_mapping.columns.ledger import LedgerState, SchemaVersion
from tests.support.catalog.memory import file, span

HOUR = 3_600
COMMITS = 12


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_commits, "LEAST_MERGED", 4)


def commit_name(age_seconds: float) -> str:
    return str(ULID.from_timestamp(time.time() - age_seconds))


@pytest.fixture
def journal(tmp_path: Path) -> TableJournal:
    """Twelve old commits of two partitions, one without files; one of them is a rewrite of the third's first file."""
    journal = TableJournal(root=tmp_path.as_uri(), folder=f"{tmp_path.as_uri()}/table")
    for number in range(COMMITS):
        name = commit_name(2 * HOUR - number)
        ranges = [span(each, number * 10, number * 10 + 10, with_file=number != 5) for each in range(2)]
        journal.keep_commit(name, ranges)
        if number == 3:
            third = ranges[0].file
    assert third is not None
    journal.keep_rewrite(rewrite(third.path, commit_name(HOUR + 600)))
    return journal


def rewrite(path: str, commit_id: str) -> Rewrite:
    made = file(f"file:///nowhere/t-reprocessed-{commit_id.lower()}.parquet")
    return Rewrite(commit_id=commit_id, reason="test", schema_version=2, groups=(RewriteGroup.of_file(path, made),))


def held(journal: TableJournal) -> list[tuple[Any, ...]]:
    found = held_files(journal.read().ranges)
    assert len({each[:2] for each in found}) == len(found)
    return found


def held_files(ranges: Iterable[StoredRange]) -> list[tuple[Any, ...]]:
    return [
        (one.partition, one.start_offset, one.end_offset, each.file, each.commit_id)
        for one in ranges
        for each in one.files
    ]


def names(folder: str) -> list[str]:
    return sorted(each.name for each in ObjectStore().list(folder))


class Troubled:
    """An object store that runs something before one of the steps that change it."""

    def __init__(self, befall: Callable[[int], None]) -> None:
        self._store = ObjectStore()
        self._befall = befall
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _step(self) -> None:
        self._befall(self.steps)
        self.steps += 1

    def write(self, path: str, data: bytes) -> None:
        self._step()
        self._store.write(path, data)

    def delete(self, path: str) -> None:
        self._step()
        self._store.delete(path)


class Killed(Exception):
    pass


def merge(journal: TableJournal, befall: Callable[[int], None]) -> None:
    store = cast("ObjectStore", Troubled(befall))
    with suppress(Killed):
        JournalCommits(folder=str(journal.folder), objects=store).merge()


def test_it_reads_the_same_put_together(journal: TableJournal) -> None:
    before = held(journal)
    assert len(before) == 2 * COMMITS
    assert journal.merge_commits() == COMMITS + 1
    assert len(names(str(journal.folder))) == 1
    assert held(journal) == before
    assert journal.merge_commits() == 0


def test_cut_short_at_any_step_it_reads_the_same_and_is_taken_up_again(journal: TableJournal) -> None:
    before = held(journal)
    for killed_at in range(COMMITS + 2):

        def kill(step: int, at: int = killed_at) -> None:
            if step >= at:
                raise Killed

        merge(journal, kill)
        assert held(journal) == before, f"killed at step {killed_at}"
    while journal.merge_commits():
        assert held(journal) == before
    assert held(journal) == before


def test_it_reads_the_same_while_that_goes_on(journal: TableJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole merge happens between the reader's list and its first look at an object."""
    before = held(journal)
    listed = JournalCommits._listed

    def list_then_merge(commits: JournalCommits) -> Any:
        found = listed(commits)
        monkeypatch.setattr(JournalCommits, "_listed", listed)
        assert journal.merge_commits() == COMMITS + 1
        return found

    monkeypatch.setattr(JournalCommits, "_listed", list_then_merge)
    assert held(journal) == before


def test_another_merge_over_the_same_span_takes_nobodys_place(journal: TableJournal) -> None:
    """Killed after a removal; the first and last are written again by who settles; the next merge has fewer."""
    before = held(journal)
    originals = {each.path: ObjectStore().read(each.path) for each in ObjectStore().list(str(journal.folder))}
    journal.merge_commits()
    first, *_, last = sorted(originals)
    for path in (first, sorted(originals)[1], sorted(originals)[2], last):
        ObjectStore().write(path, originals[path])
    assert journal.merge_commits() == 4
    assert len(names(str(journal.folder))) == 2
    assert held(journal) == before


def test_few_and_young_ones_stay_alone(tmp_path: Path) -> None:
    journal = TableJournal(root=tmp_path.as_uri(), folder=f"{tmp_path.as_uri()}/table")
    for number in range(3):
        journal.keep_commit(commit_name(2 * HOUR - number), [span(0, number, number + 1)])
    for number in range(3, 9):
        journal.keep_commit(commit_name(60 - number), [span(0, number, number + 1)])
    assert journal.merge_commits() == 0
    assert len(names(str(journal.folder))) == 9


def test_objects_stay_small(journal: TableJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    before = held(journal)
    monkeypatch.setattr(journal_commits, "MOST_BYTES", 4_000)
    journal.merge_commits()
    assert 1 < len(names(str(journal.folder))) < COMMITS
    assert held(journal) == before


def test_an_older_archiver_refuses_what_it_would_miss(journal: TableJournal) -> None:
    journal.merge_commits()
    (merged,) = ObjectStore().list(str(journal.folder))
    assert merged.name.startswith("commit-"), "what an older archiver reads"
    with pytest.raises(RegistryOutdated, match="newer archiver"):
        JournaledCommit.from_json(json.loads(ObjectStore().read(merged.path)))


def test_a_damaged_commit_is_named_and_nothing_removed(journal: TableJournal) -> None:
    damaged = f"{journal.folder}/{names(str(journal.folder))[4]}"
    ObjectStore().write(damaged, b'{"format": 1}')
    with pytest.raises(BadSegment) as caught:
        journal.merge_commits()
    assert caught.value.context["file"] == damaged
    assert len(names(str(journal.folder))) == COMMITS + 1


def test_a_store_that_gives_back_other_bytes_loses_nothing(journal: TableJournal) -> None:
    class Lying(Troubled):
        def write(self, path: str, data: bytes) -> None:
            super().write(path, data[:-1])

    commits = JournalCommits(folder=str(journal.folder), objects=cast("ObjectStore", Lying(lambda _: None)))
    with pytest.raises(StorageError, match="other bytes"):
        commits.merge()
    assert len(names(str(journal.folder))) == COMMITS + 2


def test_what_is_needed_is_what_is_in_the_table(journal: TableJournal) -> None:
    ranges = [file_name(path) for one in journal.read().ranges for path in one.paths]
    everything = {*ranges, "unknown.parquet", *(_names_of(journal))}
    assert journal.files_in_table(everything) == set(ranges)
    journal.merge_commits()
    assert journal.files_in_table(everything) == set(ranges)
    assert journal.files_in_table({ranges[0]}) == {ranges[0]}


def _names_of(journal: TableJournal) -> Iterator[str]:
    """Every file that was ever brought, the one that was rewritten too."""
    for _, commit in JournalCommits(folder=str(journal.folder), objects=ObjectStore()).read():
        yield from (one.file.path.rpartition("/")[2] for one in commit.ranges if one.file)


def settled(commit_id: str | None, *ranges: TranslatedRange) -> Settled:
    landed = tuple(Landed(range=one, commit_id=commit_id) for one in ranges)
    return Settled(landed=landed, refused=(), waiting=())


def starts(journal: TableJournal) -> list[tuple[int, int]]:
    return sorted((one.partition, one.start_offset) for one in journal.read().ranges)


@pytest.mark.parametrize("is_known", [True, False], ids=["commit known", "its snapshot expired"])
def test_a_commit_that_is_settled_later_keeps_the_ranges_that_the_journal_has_of_it(
    tmp_path: Path, is_known: bool
) -> None:
    """One of its ranges was rewritten before it was settled, so the registry no longer names it."""
    journal = TableJournal(root=tmp_path.as_uri(), folder=f"{tmp_path.as_uri()}/table")
    commit_id = commit_name(60) if is_known else None
    both = [span(0, 0, 10), span(1, 0, 10)]
    journal.keep_settled(settled(commit_id, *both))
    journal.keep_settled(settled(commit_id, both[0]))
    assert starts(journal) == [(0, 0), (1, 0)]


def test_a_commit_that_is_there_merged_and_alone_has_the_ranges_of_both(journal: TableJournal) -> None:
    late = commit_name(2 * HOUR - 100)
    both = [span(2, 0, 10), span(3, 0, 10)]
    journal.keep_commit(late, both)
    before = held(journal)
    assert journal.merge_commits()
    journal.keep_settled(settled(late, both[0]))
    assert held(journal) == before
    assert journal.merge_commits() == 0, "one object alone stays"
    journal.keep_settled(settled(late, both[1]))
    assert held(journal) == before


@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_commits_may_come_in_any_order_and_twice(random: Any, twice: int) -> None:
    """As they do from objects that overlap: the ranges are those of commits in their order."""
    start = span(0, 0, 10)
    assert start.file is not None
    commits: list[tuple[str, JournaledCommit]] = [("a", JournaledCommit(commit_id="a", ranges=(start, span(1, 0, 5))))]
    path = start.file.path
    for name in ("b", "c", "d"):
        change = rewrite(path, commit_name(0))
        commits.append((name, JournaledCommit(commit_id=name, rewrite=replace(change, commit_id=name))))
        path = change.new_paths[0]
        at = len(commits) * 10
        commits.append((name * 2, JournaledCommit(commit_id=name * 2, ranges=(span(0, at, at + 10),))))
    wanted = current_ranges(commits).ranges
    shuffled = commits + commits[:twice]
    random.shuffle(shuffled)
    found = current_ranges(shuffled).ranges
    assert found == wanted
    assert path in {path for one in found for path in one.paths}


class Paged:
    """A store that lists in two pages, the second from the name `split` on, and runs something in between."""

    def __init__(self, split: str, befall: Callable[[], Any]) -> None:
        self._store = ObjectStore()
        self._split = split
        self._befall = befall

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, folder: str) -> tuple[ListedObject, ...]:
        first = [each for each in self._store.list(folder) if each.name < self._split]
        self._befall()
        return (*first, *(each for each in self._store.list(folder) if each.name >= self._split))


def test_a_list_that_a_merge_runs_through_misses_nothing(journal: TableJournal) -> None:
    """The merged object's place is just before its first commit: there the page ends."""
    before = held(journal)
    folder = str(journal.folder)
    store = cast("ObjectStore", Paged(names(folder)[0], journal.merge_commits))
    found = current_ranges(JournalCommits(folder=folder, objects=store).read()).ranges
    assert len(names(folder)) == 1, "it was merged while the list was read"
    assert held_files(found) == before


def test_commits_that_come_meanwhile_do_not_end_the_looks(journal: TableJournal) -> None:
    later = iter(range(100))

    def come() -> None:
        number = next(later)
        journal.keep_commit(commit_name(-number), [span(2, number, number + 1)])

    store = cast("ObjectStore", Paged("d", come))
    JournalCommits(folder=str(journal.folder), objects=store)._paths()
    assert next(later) == 2


def test_commits_that_keep_vanishing_are_not_believed(journal: TableJournal) -> None:
    folder = str(journal.folder)
    store = cast("ObjectStore", Paged("a", lambda: ObjectStore().delete(f"{folder}/{names(folder)[0]}")))
    with pytest.raises(StorageUnavailable, match="run it again"):
        list(JournalCommits(folder=folder, objects=store).read())


class Versions:
    """The ledger of one topic with schema versions up to `newest`; counts how often all of them are read."""

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self.noted = self.reads = 0

    def journaled(self, topic: TopicRow, journal: str) -> int:
        return self.noted

    def note_journaled(self, topic: TopicRow, journal: str, version: int) -> None:
        self.noted = version

    def load(self, topic: TopicRow) -> LedgerState:
        self.reads += 1
        versions = range(1, self.newest + 1)
        return LedgerState(
            versions=tuple(SchemaVersion(version=each, fingerprint=f"f{each}", mapping="{}") for each in versions)
        )

    def history(self, topic: TopicRow) -> tuple[VersionRecord, ...]:
        now = datetime.now(UTC)
        return tuple(
            VersionRecord(version=each, created=now, fingerprint=f"f{each}", changes=())
            for each in range(1, self.newest + 1)
        )


def test_schema_versions_are_read_only_where_the_journal_lacks_some(tmp_path: Path) -> None:
    journal = TableJournal(root=tmp_path.as_uri(), folder=f"{tmp_path.as_uri()}/table")
    known = Versions(newest=2)
    registry, topic = cast("Registry", SimpleNamespace(ledger=known)), cast("TopicRow", None)
    for newest, reads in ((2, 1), (2, 1), (3, 2), (None, 3)):
        known.newest = newest or known.newest
        journal.keep_schemas(topic, registry, newest=newest)
        assert (known.noted, known.reads) == (known.newest, reads)
    assert len(list(tmp_path.glob("table/schema*"))) == 3
