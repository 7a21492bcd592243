"""Runs are deleted whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archiver.errors import StorageDenied
from archiver.index.store import RunStore
from catalog.registry.rewriting_runs import LEAST_GRACE, RewritingRun
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.memory_index import LakeIndex

GRACE = 2 * LEAST_GRACE


@pytest.fixture
def indexed(tmp_path: Path, archive: Any) -> LakeIndex:
    lake = Lake(tmp_path / "lake", archive.rows)
    index = LakeIndex(lake, tmp_path, "key", memory=1)
    for start in (0, 10, 20):
        rows = [archive.row(offset=start + n, key=b"k%d" % (start + n)) for n in range(10)]
        lake.add(archive.rows, archive.batch(rows), start, start + 10)
    index.memory = 900
    index.build()
    assert len(index.objects()) == 3
    return index


def test_an_erasure_deletes_the_runs_of_its_offsets(indexed: LakeIndex) -> None:
    failures, builds = indexed.removal().erase({0: [(12, 13)]}, begun_by_ms=10**9, grace=GRACE)
    assert (failures, builds) == ([], ())
    assert sorted(run.spans for run in indexed.registry.runs.values()) == [((0, 0, 10),), ((0, 20, 30),)]
    assert len(indexed.objects()) == 2
    assert indexed.registry.gone == {}
    assert indexed.build().files == 1


def test_runs_that_were_begun_later_stay(indexed: LakeIndex) -> None:
    assert indexed.removal().erase({0: [(0, 30)]}, begun_by_ms=0, grace=GRACE) == ([], ())
    assert len(indexed.objects()) == 3


def test_objects_of_ended_builds_are_deleted(indexed: LakeIndex) -> None:
    stray = indexed.objects()[0].with_name("01JZZZZZZZZZZZZZZZZZZZZZZZ.parquet")
    stray.write_bytes(b"terms")
    indexed.registry.claimed = [RewritingRun(id="index-1", begun_ms=5, silent_seconds=1.0)]
    assert indexed.removal().erase({}, begun_by_ms=10, grace=GRACE) == ([], ("index-1",))
    assert stray.exists()
    indexed.registry.claimed = [
        RewritingRun(id="index-1", begun_ms=5, silent_seconds=GRACE),
        RewritingRun(id="01J", begun_ms=5, silent_seconds=0.0),
    ]
    assert indexed.removal().erase({}, begun_by_ms=10, grace=GRACE) == ([], ())
    assert not stray.exists()
    assert len(indexed.objects()) == 3


def test_a_deletion_that_fails_is_tried_again(indexed: LakeIndex) -> None:
    class Denied(RunStore):
        def delete(self, path: str) -> None:
            raise StorageDenied("the store denies it", file=path)

    store = indexed.store
    indexed.store = Denied(objects=store.objects, folder=store.folder, spool=store.spool)
    failures, _ = indexed.removal().erase({0: [(0, 1)]}, begun_by_ms=10**9, grace=GRACE)
    assert {type(error) for error in failures} == {StorageDenied}
    assert len(indexed.registry.runs) == 2
    assert len(indexed.registry.dropped(TOPIC)) == 1
    indexed.store = store
    assert indexed.removal().erase({0: [(0, 1)]}, begun_by_ms=10**9, grace=GRACE) == ([], ())
    assert len(indexed.objects()) == 2


def test_a_merge_of_dropped_runs_is_not_registered(indexed: LakeIndex) -> None:
    runs = sorted(indexed.registry.runs)
    indexed.removal().drop(runs[:1])
    assert not indexed.registry.replace(TOPIC, indexed.registry.runs[runs[1]], runs)


def test_strays_in_a_former_folder_are_deleted(indexed: LakeIndex, tmp_path: Path) -> None:
    former = tmp_path / "former" / "key"
    former.mkdir(parents=True)
    stray = former / "01JZZZZZZZZZZZZZZZZZZZZZZZ.parquet"
    stray.write_bytes(b"terms")
    indexed.registry.note_folder(TOPIC, (tmp_path / "former").as_uri())
    indexed.registry.note_folder(TOPIC, indexed.store.folder)
    assert indexed.removal().delete_strays(grace=GRACE) == ([], ())
    assert not stray.exists()
    assert len(indexed.objects()) == 3
    assert len(indexed.registry.noted) == 2
    assert indexed.removal().delete_strays(grace=GRACE) == ([], ())
    assert indexed.registry.noted == {indexed.store.folder}


def test_strays_stay_while_another_build_is_alive(indexed: LakeIndex) -> None:
    stray = indexed.objects()[0].with_name("01JZZZZZZZZZZZZZZZZZZZZZZZ.parquet")
    stray.write_bytes(b"terms")
    indexed.registry.claimed = [
        RewritingRun(id=name, begun_ms=5, silent_seconds=1.0) for name in ("index-own", "index-other")
    ]
    assert indexed.removal().delete_strays(grace=GRACE, own="index-own") == ([], ("index-other",))
    assert stray.exists()
    del indexed.registry.claimed[1]
    assert indexed.removal().delete_strays(grace=GRACE, own="index-own") == ([], ())
    assert not stray.exists()


@pytest.mark.parametrize("grace", [0.0, 60.0])
def test_silent_builds_are_alive(indexed: LakeIndex, grace: float) -> None:
    indexed.registry.claimed = [RewritingRun(id="index-1", begun_ms=5, silent_seconds=61.0)]
    assert indexed.removal().erase({}, begun_by_ms=10, grace=grace) == ([], ("index-1",))
