"""Summed journals read the same when interrupted."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import logging
import os
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.errors import BadSegment, StorageDenied, StorageError, StorageUnavailable
from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import JournalCommits
from archiver.storage.journal_memory import JournalMemory
from archiver.storage.journal_sums import JournalSummer, SumLimits
from archiver.storage.journal_survey import survey
from catalog.errors import RegistryOutdated
from catalog.journal_entries import JournaledCommit
from catalog.model import file_name
from tests.support.catalog.memory import span
from tests.support.storage.old_journal import (
    COMMITS,
    HOUR,
    Killed,
    Troubled,
    age,
    commit_name,
    empty_journal,
    entries,
    held,
    merged,
    names,
    old_journal,
)

DENIED = StorageDenied("denied", file="f")


LIMITS = SumLimits(least=4, least_summaries=3)


@pytest.fixture
def journal(tmp_path: Path) -> TableJournal:
    return old_journal(tmp_path)


def sum_up(journal: TableJournal, store: Troubled | None = None, *, limits: SumLimits = LIMITS, **values: Any) -> Any:
    commits = (store or Troubled()).of(journal)
    return JournalSummer(commits=commits, memory=journal.memory, limits=limits, **values).run()


def path(journal: TableJournal, name: str) -> Path:
    return Path(urlparse(str(journal.folder)).path) / name


def test_it_says_the_same_summed_up(journal: TableJournal) -> None:
    before, said = held(journal), entries(journal)
    assert len(before) == 2 * COMMITS
    done = sum_up(journal)
    assert (done.before, done.summed, done.written, done.removed) == (13, 13, 1, 13)
    assert (done.kept, done.young, done.after) == (0, 0, 1)
    assert len(names(journal)) == 1
    assert (held(journal), entries(journal)) == (before, said)
    age(journal)
    assert sum_up(journal).written == 0


def test_every_byte_of_the_single_objects_is_in_the_summary(journal: TableJournal) -> None:
    """By docs/stored-files.md: a base64 text of gzip, a line for each entry."""
    singles = {name.removesuffix(".json"): path(journal, name).read_bytes() for name in names(journal)}
    sum_up(journal)
    (name,) = names(journal)
    summary = json.loads(path(journal, name).read_bytes())
    lines = gzip.decompress(base64.b64decode(summary["lines"]))
    result = dict(line.split(b" ", 1) for line in lines.splitlines())
    assert {key.decode(): data for key, data in result.items()} == singles
    assert summary["entries"] == len(singles)
    assert (summary["first"], summary["last"]) == (min(singles), max(singles))
    assert hashlib.sha256(lines).hexdigest() == summary["sha256"]
    assert path(journal, name).stat().st_size < sum(map(len, singles.values())) / 2


def test_a_dry_run_changes_nothing_and_says_what_would_be_done(journal: TableJournal) -> None:
    before = names(journal)
    done = sum_up(journal, dry_run=True)
    assert (done.before, done.summed, done.written, done.after) == (13, 13, 1, 1)
    assert names(journal) == before


def test_interruption_at_any_step_is_resumed(journal: TableJournal) -> None:
    said = entries(journal)
    steps = 0
    for killed_at in range(COMMITS + 2):

        def kill(step: int, at: int = killed_at) -> None:
            if step >= at:
                raise Killed

        store = Troubled(kill)
        with suppress(Killed):
            sum_up(journal, store)
        steps += store.steps > killed_at
        assert entries(journal) == said, f"killed at step {killed_at}"
    assert steps > 2
    sum_up(journal)
    assert entries(journal) == said
    assert len(names(journal)) == 1, "what a kill left is removed without another summary"


def test_small_summaries_are_summed_up_again(tmp_path: Path) -> None:
    journal = empty_journal(tmp_path)
    for turn in range(3):
        for number in range(5):
            at = turn * 50 + number * 10
            journal.keep_commit(commit_name(3 * HOUR - at), [span(0, at, at + 10)])
        age(journal)
        sum_up(journal)
    said = entries(journal)
    assert len(names(journal)) == 3
    assert sum_up(journal).written == 0, "they are too young: somebody may be reading a list without them"
    age(journal)
    assert sum_up(journal).written == 1
    assert (len(names(journal)), entries(journal)) == (1, said)


def test_what_older_archivers_put_together_is_read_and_summed_up(journal: TableJournal) -> None:
    said = entries(journal)
    for part in (names(journal)[:4], names(journal)[4:8], names(journal)[8:]):
        singles = {name.removesuffix(".json"): path(journal, name).read_bytes() for name in part}
        data = merged(singles)
        first, last = min(singles), max(singles).removeprefix("commit-")
        path(journal, f"{first}-{last}-{hashlib.sha256(data).hexdigest()[:16]}.json").write_bytes(data)
        for name in part:
            path(journal, name).unlink()
    assert (len(names(journal)), entries(journal)) == (3, said)
    age(journal)
    assert sum_up(journal).summed == 3
    assert (len(names(journal)), entries(journal)) == (1, said)


def test_an_older_archiver_refuses_what_it_would_miss(journal: TableJournal) -> None:
    sum_up(journal)
    (name,) = names(journal)
    assert name.startswith("commit-"), "what an older archiver reads"
    with pytest.raises(RegistryOutdated, match="newer archiver"):
        JournaledCommit.from_json(json.loads(path(journal, name).read_bytes()))


def test_few_and_young_ones_stay_alone(tmp_path: Path) -> None:
    journal = empty_journal(tmp_path)
    for number in range(3):
        journal.keep_commit(commit_name(2 * HOUR - number), [span(0, number, number + 1)])
    age(journal)
    for number in range(3, 9):
        journal.keep_commit(commit_name(60 - number), [span(0, number, number + 1)])
    done = sum_up(journal)
    assert (done.written, done.young, len(names(journal))) == (0, 6, 9)


def test_an_old_commit_that_was_written_just_now_stays_alone(journal: TableJournal) -> None:
    for name in names(journal)[4:]:
        os.utime(path(journal, name))
    assert sum_up(journal).summed == 4
    assert len(names(journal)) == COMMITS + 1 - 4 + 1


def test_an_object_that_is_written_again_meanwhile_stays(journal: TableJournal) -> None:
    first = names(journal)[0]
    more = JournaledCommit.from_json(json.loads(path(journal, first).read_bytes()))
    more = replace(more, ranges=(*more.ranges, span(3, 0, 10)))

    def write_again(step: int) -> None:
        if step == 1:
            path(journal, first).write_text(json.dumps(more.to_json()))

    sum_up(journal, Troubled(write_again))
    assert len(names(journal)) == 2
    assert (3, 0, 10) in [value[:3] for value in held(journal)]


def test_summaries_stay_small(journal: TableJournal) -> None:
    said = entries(journal)
    small = replace(LIMITS, most_bytes=4_000)
    sum_up(journal, limits=small)
    assert 1 < len(names(journal)) < COMMITS
    assert entries(journal) == said
    age(journal)
    assert sum_up(journal, limits=small).written == 0, "full ones aren't summed up again"


def test_two_at_once_do_no_harm(journal: TableJournal) -> None:
    said = entries(journal)
    for at in range(4):
        sum_up(journal, Troubled(lambda step, at=at: step == at and sum_up(journal) and None))
        assert entries(journal) == said
    assert len(names(journal)) == 1


def test_a_store_that_keeps_everything_keeps_both(journal: TableJournal, caplog: pytest.LogCaptureFixture) -> None:
    """Object Lock, a policy or a legal hold: all objects stay, and it is reported once."""
    said = entries(journal)
    store = Troubled(refuses=lambda _: True, refusal=DENIED)
    with caplog.at_level(logging.WARNING):
        done = sum_up(journal, store)
    assert (done.written, done.removed, done.kept) == (1, 0, 13)
    for _ in range(3):
        age(journal)
        done = sum_up(journal, store)
        assert (done.written, done.kept) == (0, 13), "nothing is written again and again"
    assert len(names(journal)) == 14
    assert entries(journal) == said
    assert len(caplog.records) == 1
    assert "doesn't let" in caplog.records[0].message


def test_a_store_that_keeps_everything_is_not_asked_for_each(tmp_path: Path) -> None:
    few = replace(LIMITS, refusals=4, readers=2)
    journal = old_journal(tmp_path)
    store = Troubled(refuses=lambda _: True, refusal=DENIED)
    sum_up(journal, store, limits=few)
    assert store.removals == 5
    for number in range(COMMITS, COMMITS + 6):
        journal.keep_commit(commit_name(HOUR + 500 - number), [span(0, number * 10, number * 10 + 10)])
    age(journal)
    said = entries(journal)
    done = sum_up(journal, store, limits=few)
    assert (done.written, done.kept) == (1, 13 + 6), "new ones are summed up as before"
    journal = replace(journal, memory=JournalMemory())  # another process
    age(journal)
    assert sum_up(journal, Troubled(), limits=few).written == 0
    assert len(names(journal)) == 2
    assert entries(journal) == said


def test_one_object_that_is_held_keeps_no_other(journal: TableJournal) -> None:
    kept = names(journal)[0]
    done = sum_up(journal, Troubled(refuses=lambda name: name == kept, refusal=DENIED))
    assert (done.removed, done.kept) == (12, 1)
    assert len(names(journal)) == 2


def test_a_store_that_is_away_stops_it_and_nothing_is_lost(journal: TableJournal) -> None:
    said = entries(journal)
    with pytest.raises(StorageUnavailable):
        sum_up(journal, Troubled(refuses=lambda _: True, refusal=StorageUnavailable("away")))
    assert entries(journal) == said


def test_a_damaged_commit_is_named_and_nothing_removed(journal: TableJournal) -> None:
    damaged = path(journal, names(journal)[4])
    damaged.write_bytes(b'{"format": 1}')
    age(journal)
    with pytest.raises(BadSegment) as caught:
        sum_up(journal)
    assert caught.value.context["file"] == damaged.as_uri()
    assert len(names(journal)) == COMMITS + 1


def test_a_store_that_gives_back_other_bytes_loses_nothing(journal: TableJournal) -> None:
    class Lying(Troubled):
        def write(self, path: str, data: bytes) -> None:
            super().write(path, data[:-1])

    with pytest.raises(StorageError, match="other bytes"):
        sum_up(journal, Lying())
    assert len(names(journal)) == COMMITS + 2


def test_a_changed_summary_is_named_by_every_reader(journal: TableJournal) -> None:
    sum_up(journal)
    (name,) = names(journal)
    value = json.loads(path(journal, name).read_bytes())
    path(journal, name).write_text(json.dumps({**value, "entries": value["entries"] + 1}))
    with pytest.raises(BadSegment, match="isn't what its name says"):
        journal.read()
    with pytest.raises(BadSegment, match="isn't what its name says"):
        journal.files_in_table({"a"})
    result = survey(journal)
    assert list(result.unreadable) == [path(journal, name).as_uri()]
    assert not result.commits


def test_a_summary_that_contradicts_a_single_object_is_named(journal: TableJournal) -> None:
    single = names(journal)[2]
    value = json.loads(path(journal, single).read_bytes())
    sum_up(journal)
    value["ranges"][0]["end_offset"] += 1
    path(journal, single).write_text(json.dumps(value))
    with pytest.raises(BadSegment, match="contradict") as caught:
        journal.read()
    assert {caught.value.context["file"], caught.value.context["other"]} == {
        path(journal, name).as_uri() for name in names(journal)
    }
    assert len(survey(journal).unreadable) == 1
    for number in range(4):
        journal.keep_commit(commit_name(HOUR + 400 - number), [span(1, 500 + number, 501 + number)])
    age(journal)
    sum_up(journal)  # the first summary isn't among those that are summed up, so it can't tell
    age(journal)
    with pytest.raises(BadSegment, match="contradict"):
        journal.read()


def test_a_contradiction_is_not_summed_up(journal: TableJournal) -> None:
    single = names(journal)[2]
    value = json.loads(path(journal, single).read_bytes())
    value["ranges"][0]["end_offset"] += 1
    path(journal, f"{single.removesuffix('.json')}.0123456789abcdef.json").write_text(json.dumps(value))
    age(journal)
    before = names(journal)
    with pytest.raises(BadSegment, match="contradict"):
        sum_up(journal)
    assert names(journal) == before


def test_what_is_needed_is_what_is_in_the_table(journal: TableJournal) -> None:
    ranges = [file_name(path) for item in journal.read().ranges for path in item.paths]
    brought = [
        file_name(element.file.path)
        for item in journal.commits.read()
        for element in item.commit.ranges
        if element.file
    ]
    everything = {*ranges, *brought, "unknown.parquet"}
    assert len(everything) == len(ranges) + 2
    assert journal.files_in_table(everything) == set(ranges)
    sum_up(journal)
    assert journal.files_in_table(everything) == set(ranges)
    assert journal.files_in_table({ranges[0]}) == {ranges[0]}


def test_it_reads_the_same_while_that_goes_on(journal: TableJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    before = held(journal)
    listed = JournalCommits.listed

    def list_then_sum(commits: JournalCommits) -> Any:
        result = listed(commits)
        monkeypatch.setattr(JournalCommits, "listed", listed)
        assert sum_up(journal).removed == COMMITS + 1
        return result

    monkeypatch.setattr(JournalCommits, "listed", list_then_sum)
    assert held(journal) == before


class Run:
    def __init__(self, folder: Path) -> None:
        self.journal = empty_journal(folder)
        self.said: dict[str, set[str]] = {}
        self.count = 0

    def write(self, many: int) -> None:
        for _ in range(many):
            self.count += 1
            name = commit_name(3 * HOUR - self.count)
            commit = JournaledCommit(commit_id=name, ranges=(span(0, self.count, self.count + 1),))
            self.journal.keep_commit(name, commit.ranges)
            self.said[f"commit-{name}"] = {json.dumps(commit.to_json(), sort_keys=True)}
        age(self.journal)

    def sum_up(self, killed_at: int | None, refused: int) -> None:
        def kill(step: int) -> None:
            if killed_at is not None and step >= killed_at:
                raise Killed

        self.journal.memory.refusing.clear()
        store = Troubled(
            kill, refuses=lambda name: bool(refused) and zlib.crc32(name.encode()) % refused == 0, refusal=DENIED
        )
        with suppress(Killed):
            sum_up(self.journal, store)
        age(self.journal)

    def restore(self, pick: int) -> None:
        result = [(name, *said) for name, said in sorted(self.said.items())]
        if result:
            name, text = result[pick % len(result)]
            path(self.journal, f"{name}.json").write_text(
                json.dumps(JournaledCommit.from_json(json.loads(text)).to_json(), separators=(",", ":"))
            )
            age(self.journal)


ACTS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 9)),
    st.tuples(st.just("sum"), st.none() | st.integers(0, 12), st.sampled_from([0, 0, 1, 3])),
    st.tuples(st.just("restore"), st.integers(0, 50)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACTS, max_size=12))
def test_any_order_of_writes_sums_and_kills_is_consistent(
    acts: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = Run(tmp_path_factory.mktemp("journal"))
    for act in acts:
        match act:
            case ("write", many):
                run.write(many)
            case ("sum", killed_at, refused):
                run.sum_up(killed_at, refused)
            case ("restore", pick):
                run.restore(pick)
        assert entries(run.journal) == run.said
    run.sum_up(None, 0)
    run.sum_up(None, 0)
    assert entries(run.journal) == run.said
    assert len(names(run.journal)) <= max(3, run.count // 4 + 4)
