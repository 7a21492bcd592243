"""Rewrites are remembered, recorded, and settled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.archive.table_files import TableFile
from archiver.errors import ObjectMissing
from archiver.rewrite.in_place import put_in_place
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from catalog.errors import CatalogUnreachable, RewriteRefused, RolledBack
from catalog.iceberg import properties as keys
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Unresolved
from catalog.iceberg.lineage import Head
from catalog.iceberg.rewrite_commit import Displaced, Rewritten
from catalog.iceberg.settle import Settled, settle
from catalog.model import DataFileInfo, new_id
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from tests.support.archive.listed_table import position_deletes
from tests.support.archive.puffin_file import vector_entry, write_vectors
from tests.support.catalog.memory import MemoryCatalog, file
from tests.support.catalog.staging import StagedRanges

OLD, NEW = "file:///data/old.parquet", "new.parquet"


def table_file(path: str, *deletes: str) -> TableFile:
    return TableFile(
        path=path,
        format="parquet",
        rows=5,
        size_bytes=1,
        spec_id=0,
        partition_values=(1,),
        partitions=None,
        offsets=None,
        latest=None,
        position_deletes=tuple(position_deletes(delete, [1]) for delete in deletes),
    )


def rewrite_of(group: RewriteGroup) -> Rewrite:
    return Rewrite(commit_id=new_id(), reason="test", schema_version=1, groups=(group,))


@dataclass
class World:
    folder: Path
    steps: list[str] = field(default_factory=list)
    outcome: Any = None
    there: dict[str, TableFile] = field(default_factory=dict)
    unfinished_ones: tuple[Rewrite, ...] = ()
    changed: tuple[str, ...] = ()
    staged: StagedRanges = field(default_factory=StagedRanges)

    trail: None = None
    """Where the audit trail is: nowhere."""

    def __post_init__(self) -> None:
        self.memory = MemoryCatalog(self.folder / "table")
        self.rewrite_ = rewrite_of(RewriteGroup.of_file(OLD, self.new))

    @property
    def new(self) -> DataFileInfo:
        return file((self.folder / NEW).as_uri(), rows=5)

    @property
    def registry(self) -> Any:
        values = SimpleNamespace(missing=lambda _topic, _paths: [])
        return SimpleNamespace(rewrites=self, files=self.staged, erasures=self, values=values)

    is_refused: bool = False
    erased: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def offsets(self, topic: Any) -> dict[int, list[tuple[int, int]]]:
        return self.erased

    def begin(self, topic: Any, rewrite: Rewrite) -> None:
        if self.is_refused:
            raise RewriteRefused("other ranges")
        self.steps.append("begin")

    is_ended: bool = False
    """Whether another run has ended the rewrite."""

    def may_go_on(self, topic: Any, rewrite: Rewrite) -> bool:
        return not self.is_ended

    def abandon(self, topic: Any, rewrite: Rewrite) -> None:
        self.steps.append("abandon")

    def finish(self, topic: Any, rewrite: Rewrite) -> None:
        self.steps.append("finish")

    def unfinished(self, topic: Any) -> tuple[Rewrite, ...]:
        return self.unfinished_ones

    takers_: tuple[str, ...] = ()
    """Rewrites in the journal that took the old files."""

    def takers(self, paths: set[str]) -> set[str]:
        return {*self.takers_}

    def keep_rewrite(self, rewrite: Rewrite) -> None:
        self.steps.append("journal")

    def keep_settled(self, settled: Settled) -> None:
        self.steps.append(f"settle {len(settled.landed)}")

    def rewrite(self, table: ArchiveTable, rewrite: Rewrite, *, change: Any, changed: Any) -> Any:
        self.steps.append("commit")
        self.changed = changed(table)
        return self.outcome

    def reload(self, known: Any) -> ArchiveTable:
        return self.memory.load()

    def settle(self, table: ArchiveTable, ranges: Any, *, after_rollback: bool) -> Settled:
        return settle(table, ranges, after_rollback=after_rollback)

    def files(self, iceberg: Any) -> Any:
        return self

    def named(self, paths: Any) -> dict[str, TableFile]:
        return {path: entry for path, entry in self.there.items() if path in paths}

    def put(self, known: TableFile | None = None) -> Rewritten | Displaced:
        return put_in_place(self.work, self.memory.load(), self.rewrite_, {OLD: known or table_file(OLD)})

    def settle_all(self) -> list[str]:
        settle_rewrites(self.work, self.memory.load())
        return self.steps

    @property
    def work(self) -> TableWork:
        me = cast("Any", self)
        return TableWork(registry=self.registry, catalog=me, manifests=me, journal=me)

    def kill_after_commit(self) -> None:
        for partition in range(2):
            self.staged.stage(self.folder, partition, 5)
        attempt = prepare(self.memory.load(), self.staged.pending(None), change=None, commit_id=new_id())
        self.memory.apply(attempt)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / NEW).write_bytes(b"new")
    return World(tmp_path)


def test_it_is_remembered_committed_and_recorded_in_this_order(world: World) -> None:
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    assert world.put() is world.outcome
    assert world.steps == ["begin", "commit", "journal", "finish"]


@dataclass
class Landing(World):
    def rewrite(self, table: ArchiveTable, rewrite: Rewrite, *, change: Any, changed: Any) -> Any:
        done = super().rewrite(table, rewrite, change=change, changed=changed)
        self.there = {path: entry for path, entry in self.there.items() if path not in rewrite.old_paths}
        self.there |= {path: table_file(path) for path in rewrite.new_paths}
        return done


@pytest.mark.parametrize(("path", "more"), [(OLD, ["abandon"]), ("file:///data/other.parquet", [])])
def test_killed_rewrite_is_given_up_if_its_files_are_taken(tmp_path: Path, path: str, more: list[str]) -> None:
    """Else its files would stay until it is settled, and a purge couldn't delete them."""
    (tmp_path / NEW).write_bytes(b"new")
    world = Landing(tmp_path, there={OLD: table_file(OLD), path: table_file(path)})
    world.unfinished_ones = (rewrite_of(RewriteGroup.of_file(path, file((tmp_path / "killed.parquet").as_uri()))),)
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    world.put()
    assert world.steps == ["begin", "commit", "journal", "finish", *more]


def test_a_new_file_that_went_ends_it_before_the_commit(world: World) -> None:
    (world.folder / NEW).unlink()
    with pytest.raises(ObjectMissing):
        world.put()
    assert world.steps == ["begin", "abandon"]


def test_removal_after_a_rollback_is_not_begun(world: World) -> None:
    table = world.memory.load()
    table.iceberg.metadata.properties[keys.HEAD] = Head(snapshot_id=9, sequence=99).to_text()
    removal = replace(world.rewrite_, first_offsets={0: 3})
    with pytest.raises(RolledBack):
        put_in_place(world.work, table, removal, {OLD: table_file(OLD)})
    assert world.steps == []


def test_where_nobody_knows_it_stays_begun(world: World) -> None:
    world.outcome = Unresolved(commit_id="c", attempts=3, reason="no answer")
    with pytest.raises(CatalogUnreachable) as error:
        world.put()
    assert error.value.retryable
    assert world.steps == ["begin", "commit"]


def test_a_displaced_one_is_given_up_at_once(world: World) -> None:
    world.outcome = Displaced(paths=(OLD,))
    world.unfinished_ones = (world.rewrite_,)
    assert world.put() is world.outcome
    assert world.steps == ["begin", "commit", "abandon"]


def test_rewrite_refused_for_taken_files_is_displaced(world: World) -> None:
    """The registry has the other rewrite's ranges by now. It is planned again, and not reported."""
    world.is_refused = True
    assert world.put() == Displaced(paths=(OLD,))
    world.there = {OLD: table_file(OLD)}
    with pytest.raises(RewriteRefused, match="other ranges"):
        world.put()
    assert world.steps == []


def test_one_displaced_by_deletes_alone_is_given_up_too(world: World) -> None:
    """Its old file is still in the table, as if it might yet land."""
    world.outcome = Displaced(paths=(OLD,))
    world.unfinished_ones = (world.rewrite_,)
    world.there = {OLD: table_file(OLD, "later")}
    world.put()
    assert world.steps == ["begin", "commit", "abandon"]


def test_displaced_rewrite_is_recognised_by_its_commit(world: World) -> None:
    detailed = RewriteGroup.of_file(OLD, replace(world.new, split_offsets=(4,)))
    world.outcome = Displaced(paths=(OLD,))
    world.unfinished_ones = (replace(world.rewrite_, groups=(detailed,)),)
    world.there = {OLD: table_file(OLD, "later")}
    world.put()
    assert world.steps == ["begin", "commit", "abandon"]


def test_landed_rewrite_is_recorded_if_it_looks_displaced(world: World) -> None:
    """Another engine expired its snapshot before its lost answer was looked up."""
    world.outcome = Displaced(paths=(OLD,))
    world.unfinished_ones = (world.rewrite_,)
    world.there = {world.new.path: table_file(world.new.path)}
    world.put()
    assert world.steps == ["begin", "commit", "journal", "finish"]


def test_killed_commit_is_settled_before_a_rewrite_begins(world: World) -> None:
    world.kill_after_commit()
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    world.put()
    assert world.steps == ["settle 2", "begin", "commit", "journal", "finish"]
    assert len(world.staged.landed) == 2


def test_killed_commit_is_settled_before_its_rewrites(world: World) -> None:
    world.kill_after_commit()
    world.unfinished_ones = (world.rewrite_,)
    world.there = {world.new.path: table_file(world.new.path)}
    assert world.settle_all() == ["settle 2", "journal", "finish"]


@pytest.mark.parametrize(
    ("there", "changed"),
    [
        ((), (OLD,)),
        ((table_file(OLD),), (OLD,)),
        ((table_file(OLD, "d"),), ()),
        ((table_file(OLD, "d", "later"),), (OLD,)),
    ],
    ids=["gone", "deletes undone", "as it was read", "deleted from since"],
)
def test_catalog_gets_files_that_changed_since_the_read(
    world: World, there: tuple[TableFile, ...], changed: tuple[str, ...]
) -> None:
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    world.there = {entry.path: entry for entry in there}
    world.put(table_file(OLD, "d"))
    assert world.changed == changed


def test_another_vector_of_the_same_puffin_file_is_a_change(world: World, tmp_path: Path) -> None:
    path = tmp_path / "v.puffin"
    vectors = [vector_entry(path, vector, 1) for vector in write_vectors(path, {OLD: [1], "file:///data/other": [2]})]
    first, second = (replace(table_file(OLD), position_deletes=(vector,)) for vector in vectors)
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    world.there = {OLD: second}
    world.put(first)
    assert world.changed == (OLD,)


def test_one_whose_new_file_is_in_the_table_landed(world: World) -> None:
    world.unfinished_ones = (world.rewrite_,)
    path = world.new.path
    world.there = {path: table_file(path)}
    assert world.settle_all() == ["journal", "finish"]


def test_one_whose_old_file_is_still_there_may_yet_land(world: World) -> None:
    world.unfinished_ones = (world.rewrite_,)
    world.there = {OLD: table_file(OLD)}
    assert world.settle_all() == []


def test_one_with_neither_file_can_t_land(world: World) -> None:
    world.unfinished_ones = (world.rewrite_,)
    assert world.settle_all() == ["abandon"]


@pytest.mark.parametrize(
    ("erased", "steps"), [({}, []), ({0: [(3, 4)]}, []), ({0: [(3, 6)]}, ["abandon"])], ids=["none", "some", "all"]
)
def test_rewrite_noting_only_erased_offsets_is_not_done(
    world: World, erased: dict[int, list[tuple[int, int]]], steps: list[str]
) -> None:
    """It changes no file, and is given up once another has noted all its offsets."""
    alone = Rewrite(commit_id=new_id(), reason="erase", schema_version=1, groups=(), erased=((0, 3, 5),))
    world.unfinished_ones = (alone,)
    world.erased = erased
    assert world.settle_all() == steps


def spans(rows: int, **gone: int) -> tuple[RecordSpan, ...]:
    return (RecordSpan(partition=0, start_offset=0, end_offset=5, rows=rows, **gone),)


def test_one_that_another_run_ended_is_not_committed(world: World) -> None:
    world.is_ended = True
    with pytest.raises(RewriteRefused, match="gave this rewrite up"):
        world.put()
    assert world.steps == ["begin", "commit"], "and nothing of it is recorded"


def test_new_files_lacking_records_are_refused_up_front(world: World) -> None:
    fewer = NewFile(file=file(world.new.path, rows=3), spans=spans(3))
    world.rewrite_ = rewrite_of(RewriteGroup(paths=(OLD,), files=(fewer,)))
    with pytest.raises(RewriteRefused) as error:
        world.put()
    assert (error.value.context["old_rows"], error.value.context["new_rows"]) == (5, 3)
    assert world.steps == []


def test_intended_omissions_are_accounted_for(world: World) -> None:
    fewer = NewFile(file=file(world.new.path, rows=3), spans=spans(3, erased=2))
    world.rewrite_ = rewrite_of(RewriteGroup(paths=(OLD,), files=(fewer,), why="asked for"))
    world.outcome = Rewritten(commit_id="c", snapshot_id=5)
    assert world.put() is world.outcome


@pytest.mark.parametrize(("gone", "steps"), [({"retired": 5}, ["journal", "finish"]), ({"removed": 5}, ["abandon"])])
def test_emptying_rewrite_counts_as_landed(world: World, gone: dict[str, int], steps: list[str]) -> None:
    """No snapshot of its time and no file would show it."""
    world.unfinished_ones = (rewrite_of(RewriteGroup(paths=(OLD,), emptied=spans(0, **gone), why="too old")),)
    assert world.settle_all() == steps


@pytest.mark.parametrize(("its_own", "steps"), [(False, ["abandon"]), (True, ["journal", "finish"])])
def test_removal_by_another_is_not_recorded_twice(world: World, *, its_own: bool, steps: list[str]) -> None:
    rewrite = rewrite_of(RewriteGroup(paths=(OLD,), emptied=spans(0, retired=5), why="too old"))
    world.unfinished_ones, world.takers_ = (rewrite,), ("another", *([rewrite.commit_id] if its_own else []))
    assert world.settle_all() == steps
