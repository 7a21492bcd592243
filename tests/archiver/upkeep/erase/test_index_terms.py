"""Erasures remove hashes from the index."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import StorageDenied
from archiver.upkeep.erase.finishing import finish
from archiver.upkeep.erase.report import EraseReport
from catalog.registry.rewriting_runs import RewritingRun
from catalog.term_runs import GoneOffsets
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.memory_index import LakeIndex

NOW = 10**9


@pytest.fixture
def index(tmp_path: Path, archive: Any) -> LakeIndex:
    lake = Lake(tmp_path / "lake", archive.rows)
    index = LakeIndex(lake, tmp_path, "key", memory=900)
    for start in (0, 10, 20):
        rows = [archive.row(offset=start + n, key=b"k%d" % (start + n)) for n in range(10)]
        lake.add(archive.rows, archive.batch(rows), start, start + 10)
    index.build()
    return index


def work_of(index: LakeIndex, location: str | None = None, **spans: Any) -> Any:
    runs = index.registry
    table = SimpleNamespace(uuid="uuid", location="file:///lake", first_offsets=spans.get("first_offsets", {}))
    registry = SimpleNamespace(
        index=runs,
        claims=runs.claims,
        erasures=SimpleNamespace(unfinished=lambda _topic: {}),
        retention=SimpleNamespace(proven_first_offsets=lambda _topic, claimed: spans.get("proven", claimed)),
        metadata=SimpleNamespace(
            load=lambda _topic, **_: (), doomed=lambda _topic: (), forget=lambda _topic, ids: sorted(ids)
        ),
    )
    runs.gone_spans += [GoneOffsets(0, *span, runs.now_ms()) for span in spans.get("erased", ())]
    return SimpleNamespace(
        topic=TOPIC,
        table=table,
        journal=SimpleNamespace(metadata=None),
        registry=registry,
        catalog=SimpleNamespace(reload=lambda it: it),
        config=SimpleNamespace(
            index=SimpleNamespace(location=location, memory=1 << 20),
            catalog={},
            archive=SimpleNamespace(spool=index.store.spool, orphan_grace=100.0),
        ),
        now_ms=lambda: NOW,
    )


def erased(work: Any, searched: Any, **failures: Any) -> EraseReport:
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=False, failures=failures)
    finish(work, report, grace=0.0, now=0.0, searched=searched)
    return report


@pytest.mark.parametrize(
    ("spans", "searched"),
    [
        ({"first_offsets": {0: 10}}, {}),
        ({"erased": ((3, 4),)}, {}),
        ({}, {0: ((3, 4),)}),
    ],
)
def test_runs_of_removed_records_are_deleted(index: LakeIndex, spans: dict[str, Any], searched: Any) -> None:
    report = erased(work_of(index, **spans), searched)
    assert report.succeeded
    assert sorted(run.spans for run in index.registry.runs.values()) == [((0, 10, 20),), ((0, 20, 30),)]
    assert len(index.objects()) == 2


def test_named_offsets_of_a_failed_search_keep_their_terms(index: LakeIndex) -> None:
    runs = set(index.registry.runs)
    assert not erased(work_of(index), {0: ((3, 4),)}, file=StorageDenied("the file can't be read")).succeeded
    assert set(index.registry.runs) == runs


def test_terms_that_only_another_engine_retired_are_kept(index: LakeIndex) -> None:
    runs = set(index.registry.runs)
    assert erased(work_of(index, first_offsets={0: 10}, proven={}), {}).succeeded
    assert set(index.registry.runs) == runs


def test_a_build_beside_an_erasure_is_named(index: LakeIndex) -> None:
    index.registry.claimed = [RewritingRun(id="index-1", begun_ms=5, silent_seconds=1.0)]
    report = erased(work_of(index), {0: ((3, 4),)})
    assert report.rewriters == ("index-1",)
    assert not report.succeeded


def test_finish_without_erasures_keeps_runs(index: LakeIndex) -> None:
    assert erased(work_of(index, first_offsets={0: 30}), None).succeeded
    assert len(index.objects()) == 3


def test_former_folders_are_erased(index: LakeIndex, tmp_path: Path) -> None:
    former = tmp_path / "former" / "key" / "01JZZZZZZZZZZZZZZZZZZZZZZZ.parquet"
    former.parent.mkdir(parents=True)
    former.write_bytes(b"terms")
    index.registry.note_folder(TOPIC, (tmp_path / "former").as_uri())
    assert erased(work_of(index), {0: ((0, 30),)}).succeeded
    assert index.objects() == []
    assert not former.exists()
