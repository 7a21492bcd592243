"""Commits that replace files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.refill_commit import Refill, Refilled, commit_refill
from catalog.iceberg.rewrite_commit import Displaced, RewriteOutcome, Rewritten, commit_rewrite, data_files
from catalog.model import new_id
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, change, file, span

AT_ONCE = Backoff(pause=lambda _: None)


@pytest.fixture
def lake(tmp_path: Path) -> MemoryCatalog:
    catalog = MemoryCatalog(tmp_path)
    for start in (0, 5):
        append(catalog, start)
    return catalog


def append(catalog: MemoryCatalog, start: int) -> None:
    done = commit(
        load=catalog.load,
        send=catalog.send,
        ranges=[span(0, start, start + 5)],
        change=None,
        commit_id=new_id(),
        backoff=AT_ONCE,
    )
    assert isinstance(done, Committed)


def rewrite_of(catalog: MemoryCatalog, *paths: str) -> Rewrite:
    commit_id = new_id()
    groups = tuple(RewriteGroup.of_file(path, file(f"{path}-{commit_id}")) for path in paths or catalog.paths()[:1])
    return Rewrite(commit_id=commit_id, reason="reprocess", schema_version=2, groups=groups)


def run(catalog: MemoryCatalog, rewrite: Rewrite, *, with_column: bool = False) -> RewriteOutcome:
    return commit_rewrite(
        load=catalog.load,
        send=catalog.send,
        rewrite=rewrite,
        change=change(ID, NOTE, version=2) if with_column else None,
        changed=lambda table: tuple(path for path in rewrite.old_paths if path not in data_files(table, {path})),
        backoff=AT_ONCE,
    )


def test_a_file_takes_the_place_of_another(lake: MemoryCatalog) -> None:
    before, offsets = lake.paths(), lake.load().offsets
    rewrite = rewrite_of(lake)
    done = run(lake, rewrite, with_column=True)
    assert isinstance(done, Rewritten)
    assert lake.paths() == sorted([rewrite.new_paths[0], before[1]])
    assert lake.load().offsets == offsets
    assert lake.load().schema.find_field("val.note").field_id == NOTE.field_id
    snapshot = lake.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["archiver.commit-id"] == rewrite.commit_id
    assert snapshot.summary["archiver.rewrite"] == "reprocess"
    assert "archiver.ranges" not in snapshot.summary.additional_properties
    assert snapshot.summary["total-records"] == "10"


@pytest.mark.parametrize("fate", ["lose_answer", "lose_request", "fail", "delay", "conflict", "deliver_twice"])
def test_whatever_becomes_of_the_answer_it_is_done_once(lake: MemoryCatalog, fate: str) -> None:
    snapshots = len(lake.metadata.snapshots)
    lake.script = [getattr(lake, fate)]
    rewrite = rewrite_of(lake)
    assert isinstance(run(lake, rewrite), Rewritten)
    assert len(lake.metadata.snapshots) == snapshots + 1
    assert rewrite.new_paths[0] in lake.paths()
    assert run(lake, rewrite) == Rewritten(
        commit_id=rewrite.commit_id, snapshot_id=lake.metadata.current_snapshot_id or 0
    )


@pytest.mark.parametrize("fate", ["lose_answer", "refuse_landed", "deny_landed", "conflict"])
@pytest.mark.parametrize("behind", [1, 2])
def test_an_older_load_shows_nothing_of_a_rewrite(lake: MemoryCatalog, fate: str, behind: int) -> None:
    """It lacks the second file, so the rewrite would seem displaced."""
    rewrite = rewrite_of(lake, *lake.paths()[1:])
    lake.script = [getattr(lake, fate)]
    lake.older_loads = [0, *([0] if fate == "conflict" else []), behind + 1, behind + 1]
    if fate == "conflict":
        lake.script.append(lake.lose_answer)
    assert isinstance(run(lake, rewrite), Rewritten)
    assert rewrite.new_paths[0] in lake.paths()
    assert len(lake.paths()) == 2


@pytest.mark.parametrize("fate", ["lose_answer", "refuse_landed", "deny_landed"])
def test_an_older_load_shows_nothing_of_a_refill(lake: MemoryCatalog, fate: str) -> None:
    refill = Refill(commit_id=new_id(), parent=lake.metadata.current_snapshot_id, files=(file("file:///back"),))
    lake.script = [getattr(lake, fate)]
    lake.older_loads = [0, 2, 3]
    done = commit_refill(load=lake.load, send=lake.send, refill=refill, change=None, backoff=AT_ONCE)
    assert done == Refilled(commit_id=refill.commit_id, snapshot_id=lake.metadata.current_snapshot_id or 0)
    assert len(lake.paths()) == 3


def test_an_append_meanwhile_stays(lake: MemoryCatalog) -> None:
    rewrite = rewrite_of(lake, *lake.paths())
    lake.script = [raced(lake, lambda: append(lake, 10))]
    assert isinstance(run(lake, rewrite), Rewritten)
    assert lake.load().offsets[0].next_offset == 15
    assert len(lake.paths()) == 3


def test_a_file_that_others_rewrote_meanwhile_is_left_to_them(lake: MemoryCatalog) -> None:
    mine, theirs = rewrite_of(lake), rewrite_of(lake)
    lake.script = [raced(lake, lambda: run(lake, theirs))]
    assert run(lake, mine) == Displaced(paths=(mine.old_paths[0],))
    assert theirs.new_paths[0] in lake.paths()


def test_a_rewrite_is_json() -> None:
    group = RewriteGroup.of_file("s3://b/old", file("s3://b/new"), is_sorted=False)
    rewrite = Rewrite(commit_id=new_id(), reason="reprocess", schema_version=3, groups=(group,))
    assert Rewrite.from_json(rewrite.to_json()) == rewrite


def raced(lake: MemoryCatalog, meanwhile: Callable[[], object]) -> Callable[..., None]:
    def late(attempt: object) -> None:
        meanwhile()
        lake.apply(attempt)  # type: ignore[arg-type]

    return late


def test_first_offsets_already_moved_are_displaced(lake: MemoryCatalog) -> None:
    first, second = (
        Rewrite(commit_id=new_id(), reason="expire", schema_version=2, groups=(), first_offsets={0: to})
        for to in (5, 4)
    )
    assert isinstance(run(lake, first), Rewritten)
    assert run(lake, second) == Displaced(paths=())
    assert lake.load().first_offsets == {0: 5}
