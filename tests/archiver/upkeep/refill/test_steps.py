"""Where a refill finds rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.engine.choice import EngineChoice
from archiver.storage.formats import FORMATS
from archiver.upkeep.refill import steps
from archiver.upkeep.refill.job import acceptance_of
from archiver.upkeep.refill.steps import Found, RefillWork
from catalog.account.interval import Interval
from catalog.model import DataFileInfo
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import ExpectedFile, ExpectedRange, Hole
from tests.support.catalog.memory import TOPIC, MemoryCatalog, file, span

HOLE = Hole(range_id="A", partition=0, start_offset=0, end_offset=10, rows=2)


def look(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, tuple[DataFileInfo, ...]], *account: Interval
) -> Found:
    memory = MemoryCatalog(folder / "table")
    present = replace(span(0, 0, 10), id="A")
    files = tuple(ExpectedFile(path=item.path, rows=10) for item in present.files)
    original = ExpectedRange(
        id="A", partition=0, start_offset=0, end_offset=10, files=files, rows=10, file_rows=8, digest="1" * 32
    )
    rows = SimpleNamespace(
        expected_ranges=lambda _: (original,), kept_files=lambda *_: before, account=lambda *_: account
    )
    registered = SimpleNamespace(committed_ends=lambda _: {}, ranges=lambda *_: (present,))
    gone = SimpleNamespace(offsets=lambda _: {})
    journal = SimpleNamespace(read=lambda: SimpleNamespace(erased=()))
    monkeypatch.setattr(steps, "search", lambda *_, **__: (HOLE,))
    monkeypatch.setattr(RefillWork, "_journal", lambda *_: journal)
    work = RefillWork(
        topic=TOPIC,
        table=memory.load(),
        config=cast("Any", None),
        registry=cast("Any", SimpleNamespace(rows=rows, files=registered, erasures=gone)),
        catalog=cast("Any", SimpleNamespace(reload=lambda _: memory.load())),
        engines=EngineChoice({}),
        formats=FORMATS,
    )
    return work.look()


def test_look_takes_the_digest_of_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replace(file("file:///before.parquet", rows=10), digest="0" * 32)
    interval = Interval(offsets=OffsetRange(0, 0, 9), expected=10, digest="2" * 32, erased=1, lost=3)
    result = look(tmp_path, monkeypatch, {"A": (before,)}, interval)
    range_ = result.expected["A"]
    assert (range_.rows, range_.digest, range_.gone) == (10, "2" * 32, 3)
    assert result.kept == {"A": (before,)}


def test_acceptance_names_the_present_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = look(tmp_path, monkeypatch, {"A": (file("file:///before.parquet", rows=10),)})
    accepted = acceptance_of(result, HOLE, erased=2)
    assert (accepted.left, accepted.paths) == (8, tuple(item.path for item in result.expected["A"].files))
    assert accepted.paths != ("file:///before.parquet",)


def test_digest_of_files_that_lack_rows_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(tmp_path, monkeypatch, {}).expected["A"].digest is None
