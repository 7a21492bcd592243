"""Ranges and files removed together."""

from __future__ import annotations

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.upkeep.removal.components import components, reach_beside
from archiver.upkeep.retire.cut import END, reach_of
from catalog.registry.removable import RemovableRange
from tests.support.archive.listed_table import position_deletes


def held(
    start: int, end: int, *paths: str, partition: int = 0, rows: int | None = None, expected: int | None = None
) -> RemovableRange:
    return RemovableRange(
        id=f"{partition}-{start}",
        partition=partition,
        start_offset=start,
        end_offset=end,
        paths=paths,
        rows=end - start if rows is None else rows,
        expected=end - start if expected is None else expected,
    )


def there(path: str, low: int, high: int, *, partitions: tuple[int, int] = (0, 0), deletes: bool = False) -> TableFile:
    return TableFile(
        path=path,
        format="parquet",
        rows=high - low + 1,
        size_bytes=1,
        spec_id=0,
        partition_values=(0,),
        partitions=ValueBounds(*partitions),
        offsets=ValueBounds(low, high),
        latest=None,
        position_deletes=(position_deletes("deletes", [0]),) if deletes else (),
    )


def put_together(
    ranges: list[RemovableRange], *files: TableFile
) -> tuple[list[tuple[list[str], list[str]]], list[str]]:
    parts = components(ranges, files)
    together = [
        ([first.id for first in component.ranges], sorted(file.path for file in component.files))
        for component in parts.all
    ]
    return together, [file.path for file in parts.strangers]


def test_copies_belong_to_a_range_whose_file_has_deleted_rows() -> None:
    first, second = held(0, 10, "a"), held(10, 20, "b")
    files = there("a", 0, 9, deletes=True), there("copy", 3, 5), there("b", 10, 19)
    assert put_together([first, second], *files) == ([(["0-0"], ["a", "copy"]), (["0-10"], ["b"])], [])


def test_copies_belong_to_a_range_whose_file_lacks_rows() -> None:
    first = held(0, 10, "merged", rows=7, expected=10)
    assert put_together([first], there("merged", 0, 9), there("copy", 3, 5)) == ([(["0-0"], ["copy", "merged"])], [])


def test_file_beside_a_whole_range_is_a_stranger() -> None:
    assert put_together([held(0, 10, "a")], there("a", 0, 9), there("other", 3, 5)) == (
        [(["0-0"], ["a"])],
        ["other"],
    )


def test_ranges_of_one_file_stay_together_after_it_was_split() -> None:
    ranges = [held(0, 10, "mixed"), held(0, 10, "mixed", partition=1)]
    files = there("first", 0, 9), there("second", 0, 9, partitions=(1, 1))
    assert put_together(ranges, *files) == ([(["0-0", "1-0"], ["first", "second"])], [])


def test_reach_covers_all_partitions_of_a_mixed_file() -> None:
    mixed = there("mixed", 0, 29, partitions=(0, 2))
    assert reach_of({0: 5}, [mixed], [0, 1, 2, 3]) == {0: 30, 1: 30, 2: 30}
    assert reach_of({0: 5}, [there("later", 10, 19, partitions=(0, 1))], [0, 1]) == {0: 5}
    unbounded = TableFile(
        path="x",
        format="parquet",
        rows=1,
        size_bytes=1,
        spec_id=0,
        partition_values=(),
        partitions=None,
        offsets=None,
        latest=None,
    )
    assert reach_of({0: 5}, [unbounded], [0, 1]) == {0: END, 1: END}


def test_reach_follows_rows_of_a_range_to_files_of_other_engines() -> None:
    split = [there("first", 0, 4), there("second", 5, 14, partitions=(0, 1))]
    assert reach_beside([held(0, 10, "gone")], split, [0, 1]) == {0: 15, 1: 15}
    assert reach_beside([held(0, 10, "a")], [there("a", 0, 9), *split], [0, 1]) == {}
