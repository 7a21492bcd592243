"""Staged ranges beside a table ahead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.commit.commit_staged import StagedTopic, commit_pending
from archiver.storage.journal import TableJournal
from catalog.errors import TableMissing
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.settle import Settled
from catalog.model import TranslatedRange
from tests.support.catalog.memory import TOPIC, MemoryCatalog, change
from tests.support.catalog.staging import CatalogOfOne, NoneMissing, StagedRanges, commit_staged, set_offset


@pytest.fixture
def memory(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path / "table")


@pytest.fixture
def staged() -> StagedRanges:
    return StagedRanges()


def names(memory: MemoryCatalog) -> set[str]:
    return {Path(path).stem for path in memory.paths()}


def test_a_partition_ahead_keeps_no_other_back(tmp_path: Path, memory: MemoryCatalog, staged: StagedRanges):
    first = [staged.stage(tmp_path, partition, 5) for partition in (0, 1)]
    assert commit_staged(memory, staged).is_new
    set_offset(memory, 0, 2)
    ahead, later = staged.stage(tmp_path, 0, 5), [staged.stage(tmp_path, partition, 5) for partition in (1, 2)]

    done = commit_staged(memory, staged)

    assert done.is_new
    assert {partition: error.context["staged_from"] for partition, error in done.ahead.items()} == {0: 5}
    assert done.ahead[0].context["table_has_until"] == 2
    assert names(memory) == {item.id for item in (*first, *later)}
    assert {partition: item.next_offset for partition, item in memory.load().offsets.items()} == {0: 2, 1: 10, 2: 5}
    assert staged.pending(None) == (ahead,)


def test_it_is_committed_once_it_fits(tmp_path: Path, memory: MemoryCatalog, staged: StagedRanges):
    staged.stage(tmp_path, 0, 5)
    commit_staged(memory, staged)
    set_offset(memory, 0, 0)
    ahead = [staged.stage(tmp_path, 0, 5), staged.stage(tmp_path, 0, 5)]
    done = commit_staged(memory, staged)
    assert (done.is_new, sorted(done.ahead)) == (False, [0])
    set_offset(memory, 0, 5)
    done = commit_staged(memory, staged)
    assert (done.is_new, done.ahead) == (True, {})
    assert {item.id for item in ahead} < names(memory)
    assert staged.pending(None) == ()


def test_a_table_made_anew_says_nothing_about_what_is_staged(
    tmp_path: Path, memory: MemoryCatalog, staged: StagedRanges
):
    """Another archiver began the topic again: by its offsets the ranges would be refused."""
    opened = memory.load()
    waiting = [staged.stage(tmp_path, 0, 5), staged.stage(tmp_path, 1, 5)]
    anew, newer = MemoryCatalog(tmp_path / "anew"), StagedRanges()
    for partition in (0, 1):
        newer.stage(tmp_path, partition, 50)
    commit_staged(anew, newer)

    with pytest.raises(TableMissing):
        commit_staged(anew, staged, table=opened)

    assert staged.pending(None) == tuple(waiting)
    assert (staged.landed, staged.refused) == (set(), set())


def test_repaired_offset_survives_a_slow_commit(
    tmp_path: Path, memory: MemoryCatalog, staged: StagedRanges, monkeypatch: pytest.MonkeyPatch
):
    """A repair makes no snapshot, so the catalog accepts a commit prepared before it."""

    class Repaired(CatalogOfOne):
        def settle(self, table: ArchiveTable, ranges: Sequence[TranslatedRange], **options: bool) -> Settled:
            result = super().settle(table, ranges, **options)
            set_offset(memory, 1, 2)
            return result

    for partition in (0, 1):
        staged.stage(tmp_path, partition, 5)
    commit_staged(memory, staged)
    staged.stage(tmp_path, 0, 5)
    monkeypatch.setattr(ArchiveTable, "age", property(lambda _: 6.0))
    opened = StagedTopic(topic=TOPIC, table=memory.load(), change=change(), journal=TableJournal())
    registry = SimpleNamespace(files=staged, missing=NoneMissing())
    commit_pending(opened, cast("Any", registry), cast("Any", Repaired(memory, memory.apply)), lambda _: None)
    assert {partition: item.next_offset for partition, item in memory.load().offsets.items()} == {0: 10, 1: 2}
