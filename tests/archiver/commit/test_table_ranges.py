"""Ranges from footers and journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.archive.table_files import TableFile
from archiver.commit.footers import ranges_of, without_journaled
from archiver.commit.table_ranges import table_ranges
from archiver.storage.segment import SegmentMetadata, SegmentOrigin
from catalog.model import DataFileInfo, file_name, new_id
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import MemoryCatalog, span


def footer(start: int, end: int, *, files: int = 1, range_id: str = "") -> SegmentMetadata:
    origin = SegmentOrigin(
        cluster_id="c",
        topic="orders",
        topic_id="",
        partition=0,
        start_offset=start,
        end_offset=end,
        files=files,
        range_id=range_id,
    )
    return SegmentMetadata(rows=end - start, origin=origin, mapping="{}", schema_version=1, format_version=1)


def path() -> str:
    return f"file:///data/orders-0-00000000000000000000-{new_id().lower()}.parquet"


def table_file(where: str, rows: int = 5) -> TableFile:
    return TableFile(
        path=where,
        format="parquet",
        rows=rows,
        size_bytes=1,
        spec_id=0,
        partition_values=(0,),
        partitions=None,
        offsets=None,
        latest=None,
    )


@pytest.fixture
def found(tmp_path: Path) -> Any:
    table = MemoryCatalog(tmp_path).load()

    def look(
        journaled: list[StoredRange], files: list[str], footers: dict[str, SegmentMetadata]
    ) -> list[tuple[Any, ...]]:
        present = {where: table_file(where, footers[where].rows if where in footers else 5) for where in files}
        return [(*item.offsets, item.paths) for item in table_ranges(table, journaled, present, footers)]

    return look


def test_unjournaled_rewrite_replaces_all_overlapped_ranges(found: Any) -> None:
    old = [StoredRange.of(span(0, start, start + 10)) for start in (0, 10, 20, 30)]
    first, second = path(), path()
    footers = {first: footer(0, 15), second: footer(15, 30)}
    kept = old[3].paths
    assert found(old, [first, second, *kept], footers) == [(0, 15, (first,)), (15, 30, (second,)), (30, 40, kept)]


def test_what_the_journal_knows_and_the_table_has_stays(found: Any) -> None:
    old = StoredRange.of(span(0, 0, 10))
    stray = path()
    assert found([old], [*old.paths, stray], {stray: footer(5, 15)}) == [(0, 10, old.paths)]


def test_a_file_of_a_range_takes_the_place_of_one_that_is_gone(found: Any) -> None:
    whole = span(0, 0, 10)
    both = StoredRange.of(replace(whole, files=(*whole.files, *span(0, 0, 10).files)))
    made = path()
    assert found([both], [both.paths[0], made], {made: footer(0, 10)}) == [(0, 10, (both.paths[0], made))]


def test_partial_files_leave_the_missing_rows_expected(tmp_path: Path) -> None:
    table = MemoryCatalog(tmp_path).load()
    whole = span(0, 0, 10)
    both = StoredRange.of(replace(whole, files=(*whole.files, *span(0, 0, 10).files)))
    made = path()
    footers = {made: footer(0, 10, files=2, range_id=both.id)}
    (range_,) = table_ranges(table, [both], {made: table_file(made)}, footers)
    assert (range_.offsets, range_.paths, range_.expected) == ((0, 10), (made,), both.expected)


def test_partly_found_ranges_stay_expected(found: Any) -> None:
    """The other rows are in files of other engines, without a footer."""
    old = [StoredRange.of(span(0, start, start + 10)) for start in (0, 10)]
    copy, stray = path(), path()
    existing = [(0, 10, old[0].paths), (10, 20, old[1].paths)]
    assert found(old, [copy], {copy: footer(0, 6)}) == existing
    assert found(old, [copy, stray], {copy: footer(0, 6), stray: footer(6, 20)}) == [(0, 6, (copy,)), (6, 20, (stray,))]
    for start in (5, 8):  # as many rows, but of other offsets
        footers = {copy: footer(0, 6), stray: replace(footer(start, 20), rows=14)}
        assert found(old, [copy, stray], footers) == existing


def test_accepted_losses_stay_accepted_in_other_files(tmp_path: Path) -> None:
    """A refill copied the whole range, and other engines erased two rows later."""
    table = MemoryCatalog(tmp_path).load()
    existing = StoredRange.of(span(0, 0, 10)).without(left=8, erased=2, lost=0)
    copy = path()
    (range_,) = table_ranges(table, [existing], {copy: table_file(copy, 10)}, {copy: footer(0, 10)})
    assert (range_.paths, range_.rows, range_.expected, range_.files[0].erased) == ((copy,), 10, 8, 2)
    parts = [path(), path()]
    footers = {parts[0]: footer(0, 6), parts[1]: footer(6, 10)}
    files = {where: table_file(where, about.rows) for where, about in footers.items()}
    assert table_ranges(table, [existing], files, footers) == [existing]


def test_rows_that_a_rewrite_did_not_find_stay_expected(tmp_path: Path) -> None:
    """The journal missed the rewrite of a file whose rows another engine had deleted."""
    table = MemoryCatalog(tmp_path).load()
    made = path()
    (range_,) = table_ranges(
        table, [StoredRange.of(span(0, 0, 10))], {made: table_file(made, 8)}, {made: footer(0, 10)}
    )
    assert (range_.paths, range_.rows, range_.expected) == ((made,), 8, 10)


def test_files_are_one_range_only_with_all_of_them() -> None:
    names = sorted(path() for _ in range(5))
    range_id, other_id = new_id(), new_id()
    footers = {
        names[0]: footer(0, 10, files=2, range_id=range_id),
        names[1]: footer(0, 10, files=2, range_id=range_id),
        names[2]: footer(0, 10, files=2, range_id=other_id),
        names[3]: footer(10, 20),
        names[4]: footer(10, 20),
    }
    described = {name: (about, DataFileInfo(path=name, size_bytes=1, rows=5)) for name, about in footers.items()}
    ranges = ranges_of(described)
    assert [(item.id, tuple(file.path for file in item.files)) for item in ranges.partial] == [(other_id, (names[2],))]
    assert {(item.start_offset, tuple(file.path for file in item.files)) for item in ranges.whole} == {
        (0, (names[0], names[1])),
        (10, (names[3],)),
        (10, (names[4],)),
    }
    assert len(ranges.all) == 4


@pytest.mark.parametrize("is_journaled", [True, False])
def test_files_of_rewrites_keep_ranges_that_the_journal_lacks(*, is_journaled: bool) -> None:
    """The journal was configured after the first commits."""
    replaced, rewritten, unknown = path(), path(), path()
    footers = {replaced: footer(0, 10), rewritten: footer(10, 20), unknown: footer(20, 30)}
    named = {file_name(replaced), file_name(rewritten)} if is_journaled else set()
    journal: Any = SimpleNamespace(files_ever_in_table=lambda names: named & names)
    kept = without_journaled(footers, journal, [StoredRange.of(span(0, 0, 10))])
    assert [*kept] == ([rewritten, unknown] if is_journaled else [replaced, rewritten, unknown])
    assert [*without_journaled(footers, journal, [StoredRange.of(span(0, 0, 15))])] == [*kept]
