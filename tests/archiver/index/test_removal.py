"""Runs are deleted whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import StorageDenied, TopicBusy
from archiver.index.store import RunStore
from catalog.registry.rewriting_runs import LEAST_GRACE
from catalog.term_runs import FAN_OUT, GoneOffsets
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.memory_index import BUILD, LakeIndex


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


def erased(index: LakeIndex, partition: int, start: int, end: int) -> list[GoneOffsets]:
    """Note offsets as erased now."""
    index.registry.gone_spans.append(GoneOffsets(partition, start, end, index.registry.now_ms()))
    return []


def test_an_erasure_deletes_the_runs_of_its_offsets(indexed: LakeIndex) -> None:
    since = indexed.registry.now_ms()
    assert indexed.removal().erase(erased(indexed, 0, 12, 13), begun_by_ms=since) == ([], ())
    assert sorted(run.spans for run in indexed.registry.runs.values()) == [((0, 0, 10),), ((0, 20, 30),)]
    assert len(indexed.objects()) == 2
    assert indexed.registry.dropped(TOPIC) == {}
    assert indexed.build().files == 1


def test_former_erasures_drop_no_later_run(indexed: LakeIndex) -> None:
    removal = indexed.removal()
    removal.erase(erased(indexed, 0, 12, 13), begun_by_ms=indexed.registry.now_ms())
    indexed.build()
    kept = set(indexed.registry.runs)
    assert removal.erase(erased(indexed, 0, 40, 41), begun_by_ms=indexed.registry.now_ms()) == ([], ())
    assert set(indexed.registry.runs) == kept


def test_a_merge_with_older_runs_survives_former_erasures(indexed: LakeIndex, archive: Any) -> None:
    removal = indexed.removal()
    removal.erase(erased(indexed, 0, 12, 13), begun_by_ms=indexed.registry.now_ms())
    for start in range(30, 10 * FAN_OUT, 10):
        rows = [archive.row(offset=start + n, key=b"k%d" % n) for n in range(10)]
        indexed.lake.add(archive.rows, archive.batch(rows), start, start + 10)
    assert indexed.build().merged == 1
    (merged,) = indexed.registry.runs
    removal.erase(erased(indexed, 0, 90, 91), begun_by_ms=indexed.registry.now_ms())
    assert list(indexed.registry.runs) == [merged]


def test_objects_of_ended_builds_are_deleted(indexed: LakeIndex) -> None:
    stray, other = (indexed.objects()[0].with_name(f"01JZ{name}.parquet") for name in ("-index-1", ""))
    for path in (stray, other):
        path.write_bytes(b"terms")
    indexed.registry.claim("index-1")
    assert indexed.removal().delete_strays() == []
    assert stray.exists()
    assert other.exists(), "it may be of a build of an earlier version"
    indexed.registry.claimed = []
    indexed.registry.claim("index-2")
    assert indexed.removal().delete_strays() == []
    assert (stray.exists(), other.exists()) == (False, True)
    indexed.registry.claimed = []
    indexed.registry.claim("01J")
    assert indexed.removal().delete_strays() == []
    assert not other.exists()
    assert len(indexed.objects()) == 3


def test_an_erasure_waits_for_builds_that_began_before(indexed: LakeIndex) -> None:
    indexed.registry.claim("index-older")
    since = indexed.registry.now_ms()
    indexed.registry.claim("index-younger")
    assert indexed.removal().erase([], begun_by_ms=since) == ([], ("index-older",))
    indexed.registry.forget_run(TOPIC, "index-older")
    assert indexed.removal().erase([], begun_by_ms=since) == ([], ())


def test_an_erasure_waits_for_merges_of_earlier_runs(indexed: LakeIndex) -> None:
    runs = list(indexed.registry.runs.values())
    since = indexed.registry.now_ms()
    indexed.registry.claim("index-younger")
    assert indexed.registry.begin_merge(TOPIC, runs[:1], build="index-younger")
    gone = erased(indexed, 0, 2, 3)
    assert indexed.removal().erase(gone, begun_by_ms=since) == ([], ("index-younger",))
    assert not indexed.registry.replace(TOPIC, runs[1], [runs[0].id], build="index-younger")
    indexed.registry.forget_run(TOPIC, "index-younger")
    indexed.registry.claim("index-next")
    left = list(indexed.registry.runs.values())
    assert indexed.registry.begin_merge(TOPIC, left, build="index-next")
    assert indexed.removal().erase(gone, begun_by_ms=since) == ([], ()), "runs that an erasure left are dated after it"


def test_a_silent_build_registers_nothing_after_an_erasure(indexed: LakeIndex, archive: Any) -> None:
    def erase_meanwhile() -> bool:
        claims = indexed.registry.claimed
        indexed.registry.claimed = [replace(claim, silent_seconds=LEAST_GRACE) for claim in claims]
        assert indexed.removal().erase([], begun_by_ms=10**9) == ([], ())
        return False

    rows = [archive.row(offset=30 + n, key=b"k%d" % n) for n in range(10)]
    indexed.lake.add(archive.rows, archive.batch(rows), 30, 40)
    with pytest.raises(TopicBusy):
        indexed.build(is_over=erase_meanwhile)
    assert len(indexed.objects()) == len(indexed.registry.runs) == 3
    assert indexed.build().files == 1


@pytest.mark.parametrize("silent", [0.0, LEAST_GRACE - 1.0])
def test_builds_are_alive_for_an_hour(indexed: LakeIndex, silent: float) -> None:
    indexed.registry.claim("index-1", silent=silent)
    assert indexed.removal().erase([], begun_by_ms=10**9) == ([], ("index-1",))


def test_a_deletion_that_fails_is_tried_again(indexed: LakeIndex) -> None:
    class Denied(RunStore):
        def delete(self, path: str) -> None:
            raise StorageDenied("the store denies it", file=path)

    store = indexed.store
    indexed.store = Denied(objects=store.objects, folder=store.folder, spool=store.spool)
    failures, _ = indexed.removal().erase(erased(indexed, 0, 0, 1), begun_by_ms=10**9)
    assert {type(error) for error in failures} == {StorageDenied}
    assert len(indexed.registry.runs) == 2
    assert len(indexed.registry.dropped(TOPIC)) == 1
    indexed.store = store
    assert indexed.removal().erase([], begun_by_ms=10**9) == ([], ())
    assert len(indexed.objects()) == 2


def test_a_merge_of_dropped_runs_is_not_registered(indexed: LakeIndex) -> None:
    runs = sorted(indexed.registry.runs)
    indexed.removal().drop(runs[:1])
    with claimed(indexed):
        assert not indexed.registry.replace(TOPIC, indexed.registry.runs[runs[1]], runs, build=BUILD)


def test_strays_in_a_former_folder_are_deleted(indexed: LakeIndex, tmp_path: Path) -> None:
    former = tmp_path / "former" / "key"
    former.mkdir(parents=True)
    stray = former / "01JZZZZZZZZZZZZZZZZZZZZZZZ.parquet"
    stray.write_bytes(b"terms")
    indexed.registry.note_folder(TOPIC, (tmp_path / "former").as_uri())
    indexed.registry.note_folder(TOPIC, indexed.store.folder)
    assert indexed.removal().delete_strays() == []
    assert not stray.exists()
    assert len(indexed.objects()) == 3
    assert len(indexed.registry.noted) == 2
    assert indexed.removal().delete_strays() == []
    assert indexed.registry.noted == {indexed.store.folder}


def test_a_trimmed_run_keeps_its_files_covered(indexed: LakeIndex) -> None:
    run = next(run for run in indexed.registry.runs.values() if run.spans == ((0, 10, 20),))
    with claimed(indexed):
        at_ms = indexed.registry.now_ms()
        files = indexed.archive().snapshot.files
        assert indexed.merge(gone={0: [(0, 12), (14, 16)]}).trim(run, files, begun_ms=at_ms)
    (trimmed,) = (it for it in indexed.registry.runs.values() if it.entries == 6)
    assert (trimmed.spans, trimmed.begun_ms, trimmed.level) == (((0, 12, 20),), at_ms, run.level)
    assert indexed.removal().drop(()) == []
    report = indexed.build()
    assert (report.files, report.left, len(indexed.objects())) == (0, 0, 3)


@contextmanager
def claimed(index: LakeIndex) -> Iterator[None]:
    index.registry.claim(BUILD)
    yield
    index.registry.forget_run(TOPIC, BUILD)
