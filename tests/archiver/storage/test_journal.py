"""The journal survives concurrent changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import StorageDenied, StorageUnavailable
from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import JournalCommits, agreeing
from archiver.storage.journal_sums import SumLimits
from archiver.storage.journal_survey import survey
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.current_ranges import current_ranges
from catalog.iceberg.settle import Landed, Settled
from catalog.journal_entries import JournaledCommit
from catalog.model import TopicRow, TranslatedRange, VersionRecord
from catalog.ranges.holes import Acceptance
from catalog.registry import Registry
from schema_mapping.columns.ledger import LedgerState, SchemaVersion
from tests.support.catalog.memory import span
from tests.support.storage.foreign_deletion import delete_object
from tests.support.storage.old_journal import (
    HOUR,
    Troubled,
    age,
    commit_name,
    empty_journal,
    held,
    held_files,
    names,
    old_journal,
    rewrite,
)


@pytest.fixture
def journal(tmp_path: Path) -> TableJournal:
    return old_journal(tmp_path)


def settled(commit_id: str | None, *ranges: TranslatedRange) -> Settled:
    landed = tuple(Landed(range=value, commit_id=commit_id) for value in ranges)
    return Settled(landed=landed, refused=(), waiting=())


def starts(journal: TableJournal) -> list[tuple[int, int]]:
    return sorted((item.partition, item.start_offset) for item in journal.read().ranges)


@pytest.mark.parametrize("is_known", [True, False], ids=["commit known", "its snapshot expired"])
def test_late_settled_commit_keeps_its_journaled_ranges(tmp_path: Path, is_known: bool) -> None:
    """One of its ranges was rewritten before, so the registry no longer names it."""
    journal = empty_journal(tmp_path)
    commit_id = commit_name(60) if is_known else None
    both = [span(0, 0, 10), span(1, 0, 10)]
    journal.keep_settled(settled(commit_id, *both))
    journal.keep_settled(settled(commit_id, both[0]))
    assert starts(journal) == [(0, 0), (1, 0)]


def test_summed_and_single_commit_has_the_ranges_of_both(journal: TableJournal) -> None:
    late = commit_name(2 * HOUR - 100)
    both = [span(2, 0, 10), span(3, 0, 10)]
    journal.keep_commit(late, both)
    before = held(journal)
    age(journal)
    assert journal.sum_up(limits=SumLimits(least=2)).written == 1
    journal.keep_settled(settled(late, both[0]))
    assert held(journal) == before
    age(journal)
    assert journal.sum_up(limits=SumLimits(least=2)).written == 0, "one object alone stays"
    journal.keep_settled(settled(late, both[1]))
    assert held(journal) == before


def test_commit_settled_with_more_ranges_replaces_nothing(tmp_path: Path) -> None:
    """A summing run has read the object, and is about to remove it."""
    journal = empty_journal(tmp_path)
    commit_id, both = commit_name(60), [span(0, 0, 10), span(1, 0, 10)]
    journal.keep_commit(commit_id, both[:1])
    (first,) = names(journal)
    journal.keep_settled(settled(commit_id, both[0]))
    assert names(journal) == [first]
    journal.keep_settled(settled(commit_id, *both))
    journal.keep_settled(settled(commit_id, *both))
    assert len(names(journal)) == 2
    assert starts(journal) == [(0, 0), (1, 0)]
    delete_object(ObjectStore(), f"{journal.folder}/{first}")
    assert starts(journal) == [(0, 0), (1, 0)]


def test_entry_that_a_store_will_not_replace_is_kept(tmp_path: Path) -> None:
    """With a retention, objects can't be written again, not even the same bytes."""

    class Retaining(Troubled):
        def write(self, path: str, data: bytes) -> None:
            if ObjectStore().exists(path):
                raise StorageDenied("it is kept", file=path)
            super().write(path, data)

    journal = replace(empty_journal(tmp_path), objects=cast("ObjectStore", Retaining()))
    commit_id = commit_name(60)
    range_ = span(0, 0, 10)
    journal.keep_commit(commit_id, [range_])
    journal.keep_commit(commit_id, [range_])
    with pytest.raises(StorageDenied):
        journal.keep_commit(commit_id, [span(0, 10, 20)])
    assert starts(journal) == [(0, 0)]


@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_commits_may_come_in_any_order_and_twice(random: Any, twice: int) -> None:
    """Overlapping objects merge as ranges of commits in order."""
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
    expected = current_ranges(commits).ranges
    shuffled = commits + commits[:twice]
    random.shuffle(shuffled)
    result = current_ranges(shuffled).ranges
    assert result == expected
    assert path in {path for item in result for path in item.paths}


class Paged:
    def __init__(self, split: str, befall: Callable[[], Any]) -> None:
        self._store = ObjectStore()
        self._split = split
        self._befall = befall

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, folder: str) -> tuple[ListedObject, ...]:
        first = [entry for entry in self._store.list(folder) if entry.name < self._split]
        self._befall()
        return (*first, *(entry for entry in self._store.list(folder) if entry.name >= self._split))


def test_a_list_misses_nothing_of_what_is_summed_up_meanwhile(journal: TableJournal) -> None:
    before = held(journal)
    folder = str(journal.folder)
    store = cast("ObjectStore", Paged(names(journal)[0], lambda: journal.sum_up(limits=SumLimits(least=2))))
    result = current_ranges(agreeing(JournalCommits(folder=folder, objects=store).read())).ranges
    assert len(names(journal)) == 1, "it was summed up while the list was read"
    assert held_files(result) == before


def test_commits_that_come_meanwhile_do_not_end_the_looks(journal: TableJournal) -> None:
    later = iter(range(100))

    def come() -> None:
        number = next(later)
        journal.keep_commit(commit_name(-number), [span(2, number, number + 1)])

    store = cast("ObjectStore", Paged("d", come))
    JournalCommits(folder=str(journal.folder), objects=store).listed()
    assert next(later) == 2


def test_commits_that_keep_vanishing_are_not_believed(journal: TableJournal) -> None:
    folder = str(journal.folder)
    store = cast("ObjectStore", Paged("a", lambda: delete_object(ObjectStore(), f"{folder}/{names(journal)[0]}")))
    with pytest.raises(StorageUnavailable, match="run it again"):
        list(JournalCommits(folder=folder, objects=store).read())


class Versions:
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
            versions=tuple(
                SchemaVersion(version=version, fingerprint=f"f{version}", mapping="{}") for version in versions
            )
        )

    def history(self, topic: TopicRow) -> tuple[VersionRecord, ...]:
        now = datetime.now(UTC)
        return tuple(
            VersionRecord(version=value, created=now, fingerprint=f"f{value}", changes=())
            for value in range(1, self.newest + 1)
        )


def test_schema_versions_are_read_only_if_missing(tmp_path: Path) -> None:
    journal = empty_journal(tmp_path)
    versions = Versions(newest=2)
    registry, topic = cast("Registry", SimpleNamespace(ledger=versions)), cast("TopicRow", None)
    for newest, reads in ((2, 1), (2, 1), (3, 2), (None, 3)):
        versions.newest = newest or versions.newest
        journal.keep_schemas(topic, registry, newest=newest)
        assert (versions.noted, versions.reads) == (versions.newest, reads)
    assert len(list(tmp_path.glob("table/schema*"))) == 3


def test_older_archivers_read_acceptances_with_offsets(tmp_path: Path) -> None:
    journal = empty_journal(tmp_path)
    accepted = (
        Acceptance(range_id="A", left=7, erased=3, partition=2, start_offset=10, offsets=((11, 13), (15, 16))),
        Acceptance(range_id="B", left=0, lost=10, partition=2, start_offset=20),
    )
    journal.keep_accepted("C", accepted)
    assert journal.accepted() == (("C", accepted),)
    assert survey(journal).accepted == accepted
    (path,) = tmp_path.rglob("accepted-C.json")
    value = json.loads(path.read_bytes())
    assert {key for entry in value["accepted"] for key in entry} == OLDER_KEYS
    del value["offsets"]
    path.write_text(json.dumps(value))
    assert journal.accepted() == (("C", tuple(replace(acceptance, offsets=None) for acceptance in accepted)),)


OLDER_KEYS = {"range_id", "left", "erased", "lost", "paths", "partition", "start_offset"}
"""An archiver without offsets refuses other keys, and passes over other keys of the entry."""
