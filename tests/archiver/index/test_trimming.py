"""Searches find the rows that a table has, and that it has again, after its runs were trimmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from archiver.archive.topic_archive import TopicArchive
from archiver.errors import TopicBusy
from archiver.find.query import FindQuery
from archiver.find.report import BY_INDEX, FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource
from archiver.index.trimming import RunTrim
from catalog.registry.rewriting_runs import LEAST_GRACE
from catalog.term_runs import GoneOffsets
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.memory_index import LakeIndex

ROWS = 10


def key(offset: int) -> str:
    """Both files have keys within the bounds of the other one."""
    return f"k{offset * 7 % 20:02}"


@pytest.fixture
def index(tmp_path: Path, archive: Any) -> LakeIndex:
    lake = Lake(tmp_path / "lake", archive.rows)
    for start in (0, ROWS):
        rows = [archive.row(offset=offset, key=key(offset).encode()) for offset in range(start, start + ROWS)]
        lake.add(archive.rows, archive.batch(rows), start, start + ROWS)
    lake.values.clear()
    return LakeIndex(lake, tmp_path, "key")


def search(index: LakeIndex, offset: int) -> tuple[list[int], int]:
    """Search a record by its key. Returns offsets, and the files that the index ruled out."""
    report = FindReport()

    def opens(bounded: Callable[[TopicArchive], frozenset[int]]) -> TopicArchive:
        return index.archive(bounded=bounded)

    source = FindSource.open(FindQuery.parse(key=key(offset)), opens, report)
    result = Search(query=source.query, sources=[source], report=report, parallel=2)
    offsets = [offset for _, batch in result for offset in batch.column("offset").to_pylist()]
    return offsets, report.files_out[BY_INDEX]


def main_of(index: LakeIndex) -> int:
    snapshot_id = index.lake.metadata.current_snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def test_a_build_indexes_accepted_rows_that_came_back(index: LakeIndex) -> None:
    index.registry.gone_spans.append(GoneOffsets(0, 5, 6, index.registry.now_ms()))
    index.build()
    index.erase([(0, 15, 16)])
    assert search(index, 5) == ([5], 1)
    assert search(index, 15) == ([], 2), "the trimmed run still covers its files"


def test_rows_behind_undone_deletions_are_found(index: LakeIndex) -> None:
    index.build()
    before = main_of(index)
    first = next(file for file in index.archive().snapshot.files if file.offsets and file.offsets.low == 0)
    index.lake.delete_positions({first.path: [5]})
    index.erase([(0, 5, 6)])
    assert search(index, 5) == ([], 1)
    index.lake.set_main(before)
    assert search(index, 5) == ([5], 1)


def test_rows_of_files_that_a_rollback_brings_back_are_found(index: LakeIndex) -> None:
    index.build()
    before = main_of(index)
    index.lake.rewrite(lambda table: table.filter(pc.not_equal(pc.struct_field(table["kafka"], "offset"), 5)))
    index.erase([(0, 5, 6)])
    assert search(index, 5)[0] == []
    index.lake.set_main(before)
    assert search(index, 5)[0] == [5]


def test_a_trim_notes_the_folder_that_it_writes_to(index: LakeIndex, tmp_path: Path) -> None:
    index.build()
    index.registry.noted.clear()
    folder = (tmp_path / "next").as_uri()
    index.registry.gone_spans.append(GoneOffsets(0, 5, 6, index.registry.now_ms()))
    trim = RunTrim(topic=TOPIC, registry=index.registry, store=replace(index.store, folder=folder), memory=1 << 20)
    trim.run((), lambda: list(index.archive().snapshot.files))
    assert index.registry.noted == {folder}


def test_a_build_without_a_claim_uploads_nothing(index: LakeIndex) -> None:
    def erase_meanwhile() -> bool:
        claims = index.registry.claimed
        index.registry.claimed = [replace(claim, silent_seconds=LEAST_GRACE) for claim in claims]
        assert index.removal().erase([], begun_by_ms=10**9) == ([], ())
        return False

    with pytest.raises(TopicBusy):
        index.build(is_over=erase_meanwhile)
    assert not Path(index.store.folder.removeprefix("file://")).exists(), "not even for a moment"
