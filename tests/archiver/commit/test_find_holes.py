"""Rows that a table lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from archiver.commit.find_holes import look_again, search
from archiver.commit.known_rows import named
from archiver.commit.table_rows import TableRows
from archiver.storage.formats import FORMATS
from catalog.iceberg.archive_table import ArchiveTable
from catalog.ranges.holes import ExpectedFile, ExpectedRange
from catalog.registry import Registry
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.noted import Noted
from tests.support.catalog.manifest_lists import ManifestLists

RANGES = ((0, 0, 100), (1, 0, 50), (0, 100, 200), (0, 205, 300), (1, 50, 60))


@pytest.fixture
def lake(tmp_path: Path, archive: Any) -> Lake:
    return Lake(tmp_path / "lake", archive.rows)


@pytest.fixture
def expected(lake: Lake, archive: Any) -> list[ExpectedRange]:
    result = []
    for partition, start, end in RANGES:
        rows = [archive.row(offset=offset, partition=partition) for offset in range(start, end, 3 if partition else 1)]
        path = lake.add(archive.rows, archive.batch(rows), start, end, partition=partition)
        assert path is not None
        result.append(
            ExpectedRange(
                id=f"{partition}-{start}",
                partition=partition,
                start_offset=start,
                end_offset=end,
                files=(ExpectedFile(path=path, rows=len(rows)),),
                rows=len(rows),
                file_rows=len(rows),
                digest=None,
            )
        )
    return sorted(result, key=lambda range_: (range_.partition, range_.start_offset))


def missing(
    lake: Lake, expected: Iterable[ExpectedRange], first_offsets: Mapping[int, int] | None = None, **options: Any
) -> list[tuple[int, int, int, int]]:
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    holes = search(table, tuple(expected), first_offsets or {}, **options)
    return [(hole.partition, hole.start_offset, hole.end_offset, hole.rows) for hole in holes]


def offsets(table: pa.Table) -> Any:
    return pc.struct_field(table["kafka"], "offset")


def partitions(table: pa.Table) -> Any:
    return pc.struct_field(table["kafka"], "partition")


def test_a_table_that_only_we_wrote_is_whole_by_its_numbers(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.io = ManifestLists()
    assert missing(lake, expected) == []


@pytest.mark.parametrize("with_metrics", [True, False])
def test_a_compaction_leaves_nothing_missing(lake: Lake, expected: list[ExpectedRange], *, with_metrics: bool) -> None:
    lake.rewrite(lambda table: table.take(pa.array(range(table.num_rows - 1, -1, -1))), with_metrics=with_metrics)
    assert missing(lake, expected) == missing(lake, expected, counts_tell=True) == []


def test_deleted_rows_are_told_by_range_and_offsets(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.rewrite(lambda table: table.filter(pc.or_(pc.less(offsets(table), 140), pc.greater(offsets(table), 230))))
    assert missing(lake, expected) == [(0, 140, 200, 60), (0, 205, 231, 26)]


def test_added_rows_do_not_replace_missing_ones(lake: Lake, expected: list[ExpectedRange]) -> None:
    def swapped(table: pa.Table) -> pa.Table:
        gone = pc.and_(pc.equal(partitions(table), 1), pc.less(offsets(table), 10))
        kept = table.filter(pc.invert(gone))
        return pa.concat_tables([kept, kept.slice(0, table.num_rows - kept.num_rows)])

    lake.rewrite(swapped)
    assert sum(file.record_count for file in lake.files()) == sum(file.rows for file in expected)
    assert missing(lake, expected) == [(1, 0, 50, 4)]


def test_a_table_that_was_emptied_lacks_everything(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.replace([])
    assert [rows for *_, rows in missing(lake, expected)] == [file.rows for file in expected]


def test_merge_on_read_deletes_count(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.delete_positions({expected[1].files[0].path: [0, 1, 5]})
    assert missing(lake, expected) == [(0, 100, 106, 3)]


def test_what_was_accepted_is_not_missing(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.rewrite(lambda table: table.filter(pc.not_equal(offsets(table), 12)))
    assert missing(lake, expected) == [(0, 12, 13, 1), (1, 1, 50, 1)]
    accepted = [
        ExpectedRange(**{name: getattr(file, name) for name in file.__slots__} | {"rows": file.rows - 1})
        if file.start_offset <= 12 < file.end_offset
        else file
        for file in expected
    ]
    assert missing(lake, accepted) == []


def test_ranges_are_counted_in_parts(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.rewrite(lambda table: table.filter(pc.greater(offsets(table), 130)))
    whole = missing(lake, expected)
    assert missing(lake, expected, window_rows=1) == whole != []


def test_holes_are_named_by_partition(lake: Lake, expected: list[ExpectedRange]) -> None:
    lake.replace([])
    holes = search(ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic)), expected, {})
    assert named(holes) == "partition 0 [0, 200), [205, 300) 295 rows; partition 1 [0, 60) 21 rows"


def shared(lake: Lake, expected: list[ExpectedRange]) -> list[ExpectedRange]:
    first, second, third, *rest = expected
    path, own = first.files[0].path, third.files[0].path
    half = third.rows // 2
    return [
        replace(first, files=(ExpectedFile(path=path, rows=first.rows),)),
        replace(second, files=(ExpectedFile(path=path, rows=second.rows),)),
        replace(third, files=(ExpectedFile(path=path, rows=half), ExpectedFile(path=own, rows=third.rows - half))),
        *rest,
    ]


def test_ranges_sharing_a_file_with_a_hole_are_checked(lake: Lake, expected: list[ExpectedRange]) -> None:
    live = TableRows(ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic)), FORMATS)
    assert live.suspects(expected) == []
    together = shared(lake, expected)
    assert live.suspects(together) == together[:3]
    assert missing(lake, together) == [], "all rows are there, whichever file holds them"
    assert live.rows_beside(together, together[:3]) == sum(file.rows for file in expected[:3])


def test_rows_of_a_range_in_two_files_are_counted_together(lake: Lake, expected: list[ExpectedRange]) -> None:
    first, *rest = expected
    lake.rewrite(lambda table: table.filter(pc.not_equal(offsets(table), first.start_offset + 3)))
    parts = (
        ExpectedFile(path="file:///gone.parquet", rows=5),
        ExpectedFile(path=first.files[0].path, rows=first.rows - 5),
    )
    result = missing(lake, [replace(first, files=parts), *rest])
    assert (first.partition, first.start_offset + 3, first.start_offset + 4, 1) in result


def test_rows_at_accepted_offsets_stand_for_no_other_row(lake: Lake, expected: list[ExpectedRange]) -> None:
    """Two accepted rows came back, and two more are gone now."""
    first, *rest = expected
    accepted = replace(first, rows=98, gone=2, accepted=((2, 4),), accepted_rows=2)
    lake.rewrite(lambda table: table.filter(~in_first(table, 5, 7)))
    assert missing(lake, [accepted, *rest]) == [(0, 5, 7, 2)]
    assert missing(lake, [replace(accepted, accepted=(), accepted_rows=0), *rest]) == []


def in_first(table: pa.Table, start: int, end: int) -> Any:
    places = zip(partitions(table).to_pylist(), offsets(table).to_pylist(), strict=True)
    return pa.array([partition == 0 and start <= offset < end for partition, offset in places]).to_numpy(
        zero_copy_only=False
    )


@pytest.mark.parametrize(("gone_above", "holes"), [((), []), (((40, 41),), [(0, 0, 41, 4)])])
def test_rows_below_the_first_offset_are_not_missing(
    lake: Lake, expected: list[ExpectedRange], gone_above: tuple[tuple[int, int], ...], holes: list[Any]
) -> None:
    """Another engine deleted rows before the first offset passed them: 30 retired, 27 expected."""
    first, *rest = expected
    lake.set(**{"archiver.first-offsets": '{"0": 30}'})
    lake.rewrite(lambda table: table.filter(~in_first(table, 0, 30)))
    for start, end in gone_above:
        lake.rewrite(lambda table, start=start, end=end: table.filter(~in_first(table, start, end)))
    assert missing(lake, [replace(first, rows=73, gone=27), *rest], {0: 30}) == holes


def test_the_table_alone_excuses_no_missing_rows(lake: Lake, expected: list[ExpectedRange]) -> None:
    """Another engine removed rows and set the property: only the registry's first offset retires rows."""
    lake.set(**{"archiver.first-offsets": '{"0": 30}'})
    lake.rewrite(lambda table: table.filter(~in_first(table, 0, 30)))
    table, noted = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic)), Noted(ranges=expected)
    for first_offset, holes in ((0, 1), (29, 1), (30, 0)):
        noted.proven = {0: first_offset}
        checked = look_again(TOPIC, table, cast("Registry", noted), lambda: table, known=None, is_back=True)
        assert len(checked.holes) == holes
