"""Snapshots that expire, never named ones."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from pyiceberg.exceptions import BadRequestError, ForbiddenError
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

from catalog.errors import FilesShared
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.expiry import SnapshotRetention, expirable, removal
from catalog.iceberg.housekeeping import expire, housekeep
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import MemoryCatalog, span

FEW = SnapshotRetention(seconds=0.0, keep=5, least=2, batch=1)
HOUR = 3_600_000


def commit(catalog: MemoryCatalog, first: int, end: int) -> None:
    for number in range(first, end):
        catalog.send(prepare(catalog.load(), [measured(number)], change=None, commit_id=new_id()))


def measured(number: int) -> TranslatedRange:
    range_ = span(0, number, number + 1)
    assert range_.file is not None
    bounds = {10: (0).to_bytes(4, "little"), 11: number.to_bytes(8, "little")}
    counts = {10: 1, 11: 1}
    return replace(range_, files=(replace(range_.file, lower_bounds=bounds, upper_bounds=bounds, value_counts=counts),))


def tidy(catalog: MemoryCatalog, retention: SnapshotRetention = FEW) -> int:
    def send(table: ArchiveTable, requirements: Any, updates: Any) -> TableMetadata:
        for requirement in requirements:
            requirement.validate(catalog.metadata)
        catalog.change(*updates)
        return catalog.metadata

    return housekeep(catalog.load(), retention, load=catalog.load, send=send)


@pytest.mark.parametrize("error", [BadRequestError("400"), ForbiddenError("403"), requests.ReadTimeout("none")])
def test_a_removal_that_landed_is_finished_whatever_was_answered(catalog: MemoryCatalog, error: Exception) -> None:
    commit(catalog, 0, 8)
    table, lists = catalog.load(), manifest_lists(catalog)
    going = catalog.metadata.snapshots[:3]

    def answer(_: ArchiveTable, __: Any, updates: Any) -> TableMetadata:
        catalog.change(*updates)
        raise error

    expire(table, going, load=catalog.load, send=answer)
    assert [path.exists() for path in lists] == [False] * 3 + [True] * 5
    assert len(catalog.paths()) == 8


@pytest.mark.parametrize("behind", [0, 6])
def test_a_removal_that_may_not_have_landed_deletes_nothing(catalog: MemoryCatalog, behind: int) -> None:
    """An older state of the table lacks the snapshots as well."""
    commit(catalog, 0, 8)
    table, lists = catalog.load(), manifest_lists(catalog)
    catalog.older_loads = [behind]

    def refuse(*_: Any) -> TableMetadata:
        raise BadRequestError("no")

    with pytest.raises(BadRequestError):
        expire(table, catalog.metadata.snapshots[4:6], load=catalog.load, send=refuse)
    assert all(path.exists() for path in lists)


def manifest_lists(catalog: MemoryCatalog) -> list[Path]:
    return [Path(snapshot.manifest_list.removeprefix("file://")) for snapshot in catalog.metadata.snapshots]


def ids_of(catalog: MemoryCatalog, retention: SnapshotRetention, *, now_ms: int) -> tuple[int, ...]:
    return tuple(snapshot.snapshot_id for snapshot in expirable(catalog.metadata, retention, now_ms=now_ms))


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path)


def test_the_newest_stay_and_so_does_what_is_young(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 8)
    ids = [snapshot.snapshot_id for snapshot in catalog.metadata.snapshots]
    assert ids_of(catalog, FEW, now_ms=now() + HOUR) == tuple(ids[:3])
    assert ids_of(catalog, replace(FEW, seconds=7_200.0), now_ms=now() + HOUR) == ()
    assert ids_of(catalog, replace(FEW, keep=1_000), now_ms=now() + HOUR) == ()


def test_metadata_stays_small_whatever_is_young(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 8)
    ids = [snapshot.snapshot_id for snapshot in catalog.metadata.snapshots]
    crowded = SnapshotRetention(seconds=86_400.0, most_bytes=1, least=3)
    assert ids_of(catalog, crowded, now_ms=now()) == tuple(ids[:5])


def test_what_is_named_or_belongs_to_others_stays(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 4)
    tagged, branched = catalog.metadata.snapshots[0].snapshot_id, catalog.metadata.snapshots[2].snapshot_id
    catalog.change(
        SetSnapshotRefUpdate(ref_name="audit", type="tag", snapshot_id=tagged),
        SetSnapshotRefUpdate(ref_name="what-if", type="branch", snapshot_id=branched),
    )
    foreign = catalog.metadata.snapshots[3]
    assert foreign.summary is not None
    del foreign.summary._additional_properties["archiver.commit-id"]
    commit(catalog, 4, 12)
    ids = [snapshot.snapshot_id for snapshot in catalog.metadata.snapshots]
    assert ids_of(catalog, FEW, now_ms=now() + HOUR) == tuple(ids[4:7])


def test_a_commit_in_between_keeps_the_removal_out(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 8)
    requirements, _ = removal(catalog.metadata, catalog.metadata.snapshots[:1])
    assert [
        requirement.snapshot_id for requirement in requirements if isinstance(requirement, AssertRefSnapshotId)
    ] == [catalog.metadata.current_snapshot_id]


def test_lists_of_expired_snapshots_go_and_the_table_is_whole(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 30)
    paths = catalog.paths()
    lists = [Path(snapshot.manifest_list.removeprefix("file://")) for snapshot in catalog.metadata.snapshots]
    assert tidy(catalog) == 25
    assert len(catalog.metadata.snapshots) == 5
    assert [path.exists() for path in lists] == [False] * 25 + [True] * 5
    assert catalog.paths() == paths
    commit(catalog, 30, 32)
    assert len(catalog.paths()) == 32


def test_what_was_set_back_goes_without_what_it_stood_on(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 6)
    third = catalog.metadata.snapshots[2].snapshot_id
    catalog.change(
        SetSnapshotRefUpdate.model_validate({"ref-name": "kept", "type": "tag", "snapshot-id": third}),
        SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": third}),
    )
    commit(catalog, 6, 10)
    paths = catalog.paths()
    assert tidy(catalog, replace(FEW, keep=4)) == 3
    assert len(catalog.metadata.snapshots) == 3 + 4
    assert catalog.paths() == paths


def test_it_waits_until_it_is_worth_a_commit(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 8)
    assert tidy(catalog, replace(FEW, batch=4)) == 0
    assert len(catalog.metadata.snapshots) == 8


def test_merged_manifests_keep_every_file_as_it_was(catalog: MemoryCatalog, tmp_path: Path) -> None:
    catalog.change(SetPropertiesUpdate(updates={"commit.manifest.min-count-to-merge": "6"}))
    commit(catalog, 0, 5)
    before = {entry.data_file.file_path: entry for entry in entries(catalog)}
    commit(catalog, 5, 9)
    after = {entry.data_file.file_path: entry for entry in entries(catalog)}
    assert len(after) == 9
    for path, entry in before.items():
        now_there = after[path]
        assert (now_there.snapshot_id, now_there.sequence_number) == (entry.snapshot_id, entry.sequence_number)
        assert plain(now_there.data_file) == plain(entry.data_file)
    snapshot = catalog.metadata.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(catalog.io)) < 6
    tidy(catalog, replace(FEW, keep=1, least=1))
    kept = {Path(manifest.manifest_path.removeprefix("file://")) for manifest in snapshot.manifests(catalog.io)}
    left = set((tmp_path / "metadata").glob("*-m*.avro"))
    assert kept <= left
    assert len(left - kept) <= 1, "the manifest that was merged while it was written"


def entries(catalog: MemoryCatalog) -> list[Any]:
    snapshot = catalog.metadata.current_snapshot()
    assert snapshot is not None
    return [entry for manifest in snapshot.manifests(catalog.io) for entry in manifest.fetch_manifest_entry(catalog.io)]


def plain(record: Record) -> list[Any]:
    return [record[index] for index in range(len(record))]


def lists_of(catalog: MemoryCatalog) -> list[Path]:
    return [Path(snapshot.manifest_list.removeprefix("file://")) for snapshot in catalog.metadata.snapshots]


def forbid(catalog: MemoryCatalog, value: str = "false") -> None:
    catalog.change(SetPropertiesUpdate(updates={"gc.enabled": value}))


@pytest.mark.parametrize("value", ["false", " FALSE"])
def test_nothing_expires_while_the_owner_forbids_it(catalog: MemoryCatalog, value: str) -> None:
    commit(catalog, 0, 30)
    lists = lists_of(catalog)
    forbid(catalog, value)
    assert tidy(catalog) == 0
    assert len(catalog.metadata.snapshots) == 30
    assert all(path.exists() for path in lists)
    forbid(catalog, "true")
    assert tidy(catalog) == 25


def test_property_set_while_snapshots_expire_keeps_their_files(catalog: MemoryCatalog) -> None:
    """The commit that removes snapshots can't assert a property."""
    commit(catalog, 0, 30)
    lists = lists_of(catalog)

    def send(table: ArchiveTable, requirements: Any, updates: Any) -> TableMetadata:
        catalog.change(*updates)
        forbid(catalog)
        return catalog.metadata

    assert housekeep(catalog.load(), FEW, load=catalog.load, send=send) == 25
    assert all(path.exists() for path in lists)


def test_property_set_after_the_table_was_loaded(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 30)
    table = catalog.load()
    forbid(catalog)
    assert housekeep(table, FEW, load=catalog.load, send=lambda *_: pytest.fail("snapshots have gone")) == 0


def test_chosen_snapshots_stay_too(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 8)
    table, lists = catalog.load(), lists_of(catalog)
    forbid(catalog)
    with pytest.raises(FilesShared, match=r"gc\.enabled"):
        expire(
            table,
            table.iceberg.metadata.snapshots[:2],
            load=catalog.load,
            send=lambda *_: pytest.fail("snapshots have gone"),
        )
    assert all(path.exists() for path in lists)


def test_leftovers_of_attempts_go_from_a_shared_table(catalog: MemoryCatalog) -> None:
    commit(catalog, 0, 3)
    forbid(catalog)
    before = set(lists_of(catalog)[0].parent.iterdir())
    attempt = prepare(catalog.load(), [measured(3)], change=None, commit_id=new_id())
    assert len(set(lists_of(catalog)[0].parent.iterdir()) - before) == 2
    attempt.discard()
    assert set(lists_of(catalog)[0].parent.iterdir()) == before
