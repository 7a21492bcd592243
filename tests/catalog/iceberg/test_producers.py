"""Snapshots are never built on truncated metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.manifest import ManifestFile

from catalog.errors import MetadataDamaged
from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.housekeeping import expire
from catalog.iceberg.light_transaction import LightTransaction
from catalog.iceberg.lineage import summary_of
from catalog.iceberg.producers import overwrite
from catalog.iceberg.rewrite_commit import Rewritten, commit_rewrite, data_files
from catalog.iceberg.written_lists import WrittenLists
from catalog.model import new_id
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from tests.support.catalog.avro_blocks import without_last_block
from tests.support.catalog.memory import MemoryCatalog, file, span

AT_ONCE = Backoff(pause=lambda _: None)


@pytest.fixture
def lake(tmp_path: Path) -> MemoryCatalog:
    catalog = MemoryCatalog(tmp_path)
    for start in (0, 5, 10):
        append(catalog, start)
    return catalog


def append(catalog: MemoryCatalog, start: int, *, files: int = 1) -> None:
    done = commit(
        load=catalog.load,
        send=catalog.send,
        ranges=[span(partition, start, start + 5) for partition in range(files)],
        change=None,
        commit_id=new_id(),
        backoff=AT_ONCE,
    )
    assert isinstance(done, Committed)


def replace(catalog: MemoryCatalog, path: str) -> None:
    commit_id = new_id()
    groups = (RewriteGroup.of_file(path, file(f"{path}-{commit_id}")),)
    rewrite = Rewrite(commit_id=commit_id, reason="reprocess", schema_version=2, groups=groups)
    done = commit_rewrite(
        load=catalog.load, send=catalog.send, rewrite=rewrite, change=None, changed=lambda _: (), backoff=AT_ONCE
    )
    assert isinstance(done, Rewritten)


def manifests(catalog: MemoryCatalog) -> list[ManifestFile]:
    snapshot = catalog.metadata.current_snapshot()
    assert snapshot is not None
    return snapshot.manifests(catalog.load().io)


def current_list(catalog: MemoryCatalog) -> Path:
    snapshot = catalog.metadata.current_snapshot()
    assert snapshot is not None
    return Path(snapshot.manifest_list.removeprefix("file://"))


def test_a_summary_counts_the_manifests(lake: MemoryCatalog) -> None:
    replace(lake, lake.paths()[0])
    summaries = [summary_of(snapshot) for snapshot in lake.metadata.snapshots]
    assert [(item["manifests-created"], item["manifests-kept"]) for item in summaries[:3]] == [
        ("1", "0"),
        ("1", "1"),
        ("1", "2"),
    ]
    listed = manifests(lake)
    new = sum(item.added_snapshot_id == lake.metadata.current_snapshot_id for item in listed)
    assert (summaries[3]["manifests-created"], summaries[3]["manifests-kept"]) == (str(new), str(len(listed) - new))


@pytest.mark.parametrize("is_another_process", [False, True])
def test_no_snapshot_is_made_on_a_list_that_was_cut_short(lake: MemoryCatalog, *, is_another_process: bool) -> None:
    if is_another_process:
        lake.lists = WrittenLists()
    paths, damaged = lake.paths(), current_list(lake)
    without_last_block(damaged)
    with pytest.raises(MetadataDamaged, match=damaged.name):
        append(lake, 15)
    with pytest.raises(MetadataDamaged, match=damaged.name):
        replace(lake, paths[-1])
    assert len(lake.metadata.snapshots) == 3


@pytest.mark.parametrize("is_all_gone", [False, True])
def test_no_snapshot_is_made_in_a_store_that_lost_the_list(lake: MemoryCatalog, *, is_all_gone: bool) -> None:
    """An unmounted folder looks empty, and accepts every write."""
    damaged = current_list(lake)
    for path in damaged.parent.iterdir() if is_all_gone else [damaged]:
        path.unlink()
    for _ in range(2):  # the list is kept for one try
        with pytest.raises(FileNotFoundError):
            append(lake, 15)
    assert len(lake.metadata.snapshots) == 3


def test_no_manifest_that_was_cut_short_is_written_anew(tmp_path: Path) -> None:
    """A rewrite would also leave out the entries that the manifest lost."""
    lake = MemoryCatalog(tmp_path)
    append(lake, 0, files=3)
    (manifest,) = manifests(lake)
    paths = lake.paths()
    without_last_block(damaged := Path(manifest.manifest_path.removeprefix("file://")))
    with pytest.raises(MetadataDamaged, match=damaged.name):
        replace(lake, paths[0])
    assert len(lake.metadata.snapshots) == 1


def test_manifest_truncated_during_its_rewrite_is_detected(tmp_path: Path) -> None:
    """pyiceberg reads it again after our check."""
    lake = MemoryCatalog(tmp_path)
    append(lake, 0, files=3)
    (manifest,) = manifests(lake)
    table = lake.load().iceberg
    gone = data_files(lake.load(), {lake.paths()[0]})
    without_last_block(damaged := Path(manifest.manifest_path.removeprefix("file://")))
    producer = overwrite(LightTransaction(table), {}, WrittenLists())
    for entry in gone.values():
        producer.delete_data_file(entry)
    with pytest.raises(MetadataDamaged, match=damaged.name):
        producer.commit()


def test_no_manifest_that_was_cut_short_is_merged(tmp_path: Path) -> None:
    lake = MemoryCatalog(tmp_path)
    append(lake, 0, files=3)
    (manifest,) = manifests(lake)
    lake.metadata.properties["commit.manifest.min-count-to-merge"] = "2"
    without_last_block(damaged := Path(manifest.manifest_path.removeprefix("file://")))
    with pytest.raises(MetadataDamaged, match=damaged.name):
        append(lake, 5)
    assert len(lake.metadata.snapshots) == 1


def test_nothing_expires_where_a_list_that_stays_was_cut_short(lake: MemoryCatalog) -> None:
    """Manifests lost by such a list would pass for expired ones."""
    paths = {manifest.manifest_path for manifest in manifests(lake)}
    without_last_block(current_list(lake))
    before = lake.load()
    with pytest.raises(MetadataDamaged, match="cut short"):
        expire(
            before,
            before.iceberg.metadata.snapshots[:2],
            load=lake.load,
            send=lambda *_: pytest.fail("snapshots have gone"),
        )
    assert all(Path(path.removeprefix("file://")).exists() for path in paths)
