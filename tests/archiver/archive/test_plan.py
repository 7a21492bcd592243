"""Which files are read, by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

from archiver.archive.delete_index import DeleteIndex
from archiver.archive.file_columns import COLUMNS, in_columns
from archiver.archive.plan import TopicSnapshot, select_files
from archiver.archive.table_files import TableFiles
from archiver.archive.watermarks import first_offset_since, high_watermark, low_watermark
from archiver.storage.segment import RowRange
from tests.support.archive.listed_table import data_file

EVENT, APPEND, RAW = 12, 17, 18
Told = tuple[tuple[int, int] | None, tuple[int, int] | None, int | None]
"""Bounds of partition and offset, and the greatest timestamp (ms); None where the manifest doesn't say."""

PAIRS = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: (min(pair), max(pair)))
FILES = st.lists(st.tuples(st.none() | PAIRS, st.none() | PAIRS, st.none() | st.integers(0, 4)), max_size=6)


def files_of(told: Sequence[Told]) -> TableFiles:
    entries = [entry(f"file:///{number}", *value) for number, value in enumerate(told)]
    return TableFiles(in_columns(entries, frozenset()), COLUMNS, DeleteIndex((), {}))


def entry(
    path: str, partitions: tuple[int, int] | None, offsets: tuple[int, int] | None, latest: int | None
) -> ManifestEntry:
    times = {} if latest is None else {EVENT: latest, APPEND: None, RAW: None}
    file = data_file(path, [1], partitions=partitions, offsets=offsets, times=times)
    file.spec_id = 0
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, sequence_number=1, data_file=file)


def snapshot(files: TableFiles, **next_offsets: int) -> TopicSnapshot:
    ends = {int(partition.removeprefix("p")): end for partition, end in next_offsets.items()}
    return TopicSnapshot(snapshot_id=1, files=files, next_offsets=ends, storage=cast("Any", None))


def may_hold(told: Told, wanted: RowRange) -> bool:
    partitions, offsets, latest = told
    return (
        (partitions is None or partitions[0] <= wanted.partition <= partitions[1])
        and (offsets is None or (offsets[1] >= wanted.start_offset and offsets[0] < wanted.end_offset))
        and (wanted.min_timestamp is None or latest is None or latest >= wanted.min_timestamp)
    )


@given(FILES, PAIRS, st.integers(0, 4), st.none() | st.integers(0, 5))
def test_files_that_may_hold_rows_come_by_their_least_offset(
    told: list[Told], offsets: tuple[int, int], partition: int, since: int | None
) -> None:
    expected = RowRange(partition=partition, start_offset=offsets[0], end_offset=offsets[1], min_timestamp=since)
    result = [int(file.path.removeprefix("file:///")) for file in select_files(files_of(told), expected)]
    kept = [number for number, value in enumerate(told) if may_hold(value, expected)]
    assert result == sorted(kept, key=lambda number: -1 if told[number][1] is None else told[number][1][0])


def test_the_table_s_property_says_where_a_partition_ends() -> None:
    at = snapshot(files_of([((0, 0), (5, 9), None)]), p0=30, p2=7)
    assert (high_watermark(at, 0), high_watermark(at, 2)) == (30, 7)
    assert at.partitions == (0, 2)


def test_without_the_property_the_greatest_bound_says_it() -> None:
    at = snapshot(files_of([((0, 0), (5, 9), None), ((0, 1), (40, 49), None), ((2, 2), (0, 99), None)]))
    assert [high_watermark(at, partition) for partition in range(4)] == [50, 50, 100, 0]


def test_low_watermark_of_single_partition_opens_no_file() -> None:
    at = snapshot(files_of([((0, 0), (20, 29), None), ((0, 0), (7, 9), None), ((1, 1), (3, 4), None)]), p3=8)
    assert [low_watermark(at, partition) for partition in (0, 1, 3)] == [7, 3, 8]


@pytest.mark.parametrize("told", [((0, 1), (7, 9), None), ((0, 0), None, None)])
def test_a_file_whose_bounds_do_not_tell_is_looked_into(told: Told) -> None:
    with pytest.raises(AttributeError, match="formats"):
        low_watermark(snapshot(files_of([told]), p0=30), 0)


def test_no_file_is_looked_into_for_a_time_after_all_records() -> None:
    at = snapshot(files_of([((0, 0), (0, 9), 100)]))
    assert first_offset_since(at, 0, 101) is None
    with pytest.raises(AttributeError, match="formats"):
        first_offset_since(at, 0, 100)
