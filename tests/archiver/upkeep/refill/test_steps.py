"""Where a refill looks for the rows of a hole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.engine.choice import EngineChoice
from archiver.storage.formats import FORMATS
from archiver.upkeep.refill import steps
from archiver.upkeep.refill.job import _accepted
from archiver.upkeep.refill.steps import Found, RefillWork
from catalog.model import DataFileInfo
from catalog.ranges.holes import ExpectedFile, ExpectedRange, Hole
from tests.support.catalog.memory import TOPIC, MemoryCatalog, file, span

HOLE = Hole(range_id="A", partition=0, start_offset=0, end_offset=10, rows=2)


def look(folder: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, DataFileInfo]) -> Found:
    """A range of ten rows whose present file has eight: the rewrite did not find what others had deleted."""
    memory = MemoryCatalog(folder / "table")
    present = replace(span(0, 0, 10), id="A")
    files = tuple(ExpectedFile(path=each.path, rows=10) for each in present.files)
    one = ExpectedRange(
        id="A", partition=0, start_offset=0, end_offset=10, files=files, rows=10, file_rows=8, digest=None
    )
    rows = SimpleNamespace(expected_ranges=lambda _: (one,), originals=lambda *_: before)
    held = SimpleNamespace(committed_ends=lambda _: {}, ranges=lambda *_: (present,))
    gone = SimpleNamespace(offsets=lambda _: {})
    journal = SimpleNamespace(read=lambda: SimpleNamespace(erased=()))
    monkeypatch.setattr(steps, "search", lambda *_, **__: (HOLE,))
    monkeypatch.setattr(RefillWork, "_journal", lambda *_: journal)
    work = RefillWork(
        topic=TOPIC,
        table=memory.load(),
        config=cast("Any", None),
        registry=cast("Any", SimpleNamespace(rows=rows, files=held, erasures=gone)),
        catalog=cast("Any", SimpleNamespace(reload=lambda _: memory.load())),
        engines=EngineChoice({}),
        formats=FORMATS,
    )
    return work.look()


def test_rows_that_a_rewrite_did_not_find_come_from_the_file_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = replace(file("file:///before.parquet", rows=10), digest="0" * 32)
    found = look(tmp_path, monkeypatch, {"A": before})
    source = found.sources["A"]
    assert source.is_intact
    assert (source.rows, source.digest, [each.path for each in source.files]) == (10, before.digest, [before.path])
    assert found.missing([HOLE])[0].files == (before,)


def test_an_acceptance_still_names_the_present_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registry and journal know the range by it."""
    found = look(tmp_path, monkeypatch, {"A": file("file:///before.parquet", rows=10)})
    accepted = _accepted(found, HOLE, erased=2)
    assert (accepted.left, accepted.paths) == (8, tuple(each.path for each in found.expected["A"].files))
    assert accepted.paths != ("file:///before.parquet",)


def test_without_a_file_before_it_nothing_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, {})
    assert found.sources == found.expected
    assert not found.sources["A"].is_intact
