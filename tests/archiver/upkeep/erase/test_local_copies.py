"""Copies on the erasure's machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from archiver.archive.plan_cache import PlanCache
from archiver.storage.formats import FORMATS
from archiver.storage.spool import KEPT
from archiver.upkeep.erase.copies import Copies
from archiver.upkeep.erase.local_copies import forget_plans, remove_local_copies
from catalog.iceberg.archive_table import ArchiveTable
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import TOPIC, Lake


def kept(spool: Path, lake: Lake, archive: Any, start: int, end: int, *, partition: int = 0) -> Path:
    batch = archive.batch(rows_of(archive, range(start, end), partition=partition))
    path = lake.add(archive.rows, batch, start, end, partition=partition)
    assert path is not None
    (spool / KEPT).mkdir(parents=True, exist_ok=True)
    copy = spool / KEPT / f"orders-{partition}-{start:020d}.parquet"
    shutil.copyfile(urlsplit(path).path, copy)
    return copy


def removed(spool: Path, lake: Lake, spans: dict[int, list[tuple[int, int]]], first_offset: int = 0) -> Copies:
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    return remove_local_copies(
        spool, table, spans, archived={0: 20, 1: 5}, first_offsets={0: first_offset}, formats=FORMATS
    )


def test_kept_files_go_once_all_of_their_records_are_archived(archive: Any, lake: Lake, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    assert removed(spool, lake, {0: [(3, 4)]}) == Copies()
    hers, theirs = kept(spool, lake, archive, 0, 10), kept(spool, lake, archive, 10, 20)
    younger, elsewhere = kept(spool, lake, archive, 20, 30), kept(spool, lake, archive, 0, 10, partition=1)
    (spool / KEPT / "note.txt").write_text("of a person")
    assert removed(spool, lake, {0: [(3, 4), (25, 26)]}) == Copies(deleted=1, left=(str(younger),))
    assert (hers.exists(), theirs.exists(), younger.exists(), elsewhere.exists()) == (False, True, True, True)
    assert removed(spool, lake, {1: [(9, 10)]}) == Copies(left=(str(elsewhere),)), "not archived as a whole"
    assert removed(spool, lake, {2: [(0, 99)]}) == Copies()


def test_unreadable_kept_file_is_named_for_its_topic_only(archive: Any, lake: Lake, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    damaged = kept(spool, lake, archive, 0, 10)
    damaged.write_bytes(damaged.read_bytes()[:99])
    assert removed(spool, lake, {0: [(3, 4)]}) == Copies(left=(str(damaged),))
    assert removed(spool, lake, {1: [(3, 4)]}) == Copies(left=(str(damaged),)), "it may hold anything of its topic"
    damaged.rename(damaged.with_name("orders2-0-0.parquet"))
    assert removed(spool, lake, {0: [(3, 4)]}) == Copies()
    whole = kept(spool, lake, archive, 0, 10)
    elsewhere = ArchiveTable(topic=replace(TOPIC, cluster_id="another"), iceberg=lake.load(TOPIC.topic))
    assert (
        remove_local_copies(spool, elsewhere, {0: [(3, 4)]}, archived={0: 20}, first_offsets={}, formats=FORMATS)
        == Copies()
    )
    assert whole.exists()


def test_kept_file_may_be_the_only_copy_after_compaction(archive: Any, lake: Lake, tmp_path: Path) -> None:
    spool = tmp_path / "spool of ours %41"
    only = kept(spool, Lake(tmp_path / "denied", archive.rows), archive, 0, 10)
    lake.add(archive.rows, archive.batch(rows_of(archive, (0, 1, 2, 3, 9, 12))), 0, 20)
    assert removed(spool, lake, {0: [(3, 4)]}) == Copies(left=(str(only),))
    assert removed(spool, lake, {0: [(3, 4), (5, 9)]}) == Copies(left=(str(only),)), "4 is in no other file"
    assert only.exists()
    lake.set(**{"archiver.first-offsets": '{"0": 5}'})
    assert removed(spool, lake, {0: [(3, 4), (5, 9)]}) == Copies(left=(str(only),)), "the table alone says it"
    assert removed(spool, lake, {0: [(3, 4), (6, 9)]}, 5) == Copies(left=(str(only),)), "so is 5"
    assert removed(spool, lake, {0: [(3, 4), (5, 9)]}, 5) == Copies(deleted=1), "those below 5 are retired"
    assert not only.exists()
    kept(spool, Lake(tmp_path / "denied2", archive.rows), archive, 0, 10)
    assert removed(spool, lake, {0: [(0, 9)]}) == Copies(deleted=1), "9 is archived, and all others are erased"
    kept(spool, Lake(tmp_path / "denied3", archive.rows), archive, 0, 10)
    assert removed(spool, lake, {0: [(0, 10)]}) == Copies(deleted=1), "nothing is left of it"


def test_kept_file_with_records_the_log_lost_stays(archive: Any, lake: Lake, tmp_path: Path) -> None:
    """The gap from 10 to 15 was accepted: the table continues behind it."""
    spool = tmp_path / "spool"
    hers = kept(spool, lake, archive, 0, 10)
    only = kept(spool, Lake(tmp_path / "denied", archive.rows), archive, 10, 20)
    lake.add(archive.rows, archive.batch(rows_of(archive, range(15, 20))), 10, 20)
    assert removed(spool, lake, {0: [(3, 4), (16, 17)]}) == Copies(deleted=1, left=(str(only),))
    assert (hers.exists(), only.exists()) == (False, True)


def test_what_was_read_of_manifests_is_forgotten(tmp_path: Path) -> None:
    cache = PlanCache.below(tmp_path / "spool")
    assert cache is not None
    (cache.folder / "any.columns").write_bytes(b"jane")
    forget_plans(tmp_path / "spool")
    assert [*cache.folder.iterdir()] == []
    forget_plans(tmp_path / "never")
