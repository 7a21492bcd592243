"""Files that no registry knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.commit.footers import NO_EPOCH, range_id, range_of
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentMetadata, SegmentOrigin
from archiver.upkeep.rebuild.unreferenced import Ends, LeftFor, Unreferenced, continuing_ranges
from catalog.model import DataFileInfo, new_id
from catalog.partitioning import PartitionTuple
from tests.support.catalog.memory import TOPIC, MemoryCatalog, file

VERSION = 3
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
INGEST_ID = 13


def footer(start: int, end: int, **of: Any) -> SegmentMetadata:
    base = {"cluster_id": TOPIC.cluster_id, "topic": TOPIC.topic, "topic_id": str(TOPIC.topic_id), "partition": 0}
    origin = SegmentOrigin(**{**base, "start_offset": start, "end_offset": end, **of})
    return SegmentMetadata(rows=1, origin=origin, mapping="{}", schema_version=VERSION, format_version=1)


@dataclass
class Folder:
    path: Path
    memory: MemoryCatalog
    footers: dict[str, SegmentMetadata] = field(default_factory=dict)
    days: dict[str, tuple[int, int]] = field(default_factory=dict)

    def put(self, says: SegmentMetadata, *, days: tuple[int, int] = (5, 5)) -> str:
        assert says.origin is not None
        partition, start = says.origin.partition, says.origin.start_offset
        name = DataFileName(
            topic=says.origin.topic, ulid=new_id(), extension="parquet", partition=partition, start_offset=start
        )
        path = self.path / "data" / str(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        self.footers[path.as_uri()], self.days[path.as_uri()] = says, days
        return name.ulid

    def look(self, ends: Ends, *, versions: frozenset[int] = frozenset({VERSION})) -> Unreferenced:
        return continuing_ranges(self.memory.load(), ObjectStore(), cast("Any", self), versions=versions, ends=ends)

    def of_path(self, path: str) -> Any:
        return self

    @contextmanager
    def open(self, objects: Any, path: str) -> Iterator[Any]:
        yield _Reader(self.footers[path])

    def describe(self, objects: Any, path: str, **_: Any) -> DataFileInfo:
        low, high = ((day * DAY_US + HOUR_US).to_bytes(8, "little") for day in self.days[path])
        return replace(
            file(path, rows=self.footers[path].rows), lower_bounds={INGEST_ID: low}, upper_bounds={INGEST_ID: high}
        )


@dataclass
class _Reader:
    metadata: SegmentMetadata


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, MemoryCatalog(tmp_path))


def test_files_are_chained_from_where_the_table_ends(folder: Folder) -> None:
    ids = [folder.put(footer(start, start + 10)) for start in (10, 20, 30)]
    result = folder.look(Ends(reached={0: 10}))
    assert [(range_.id, range_.start_offset, range_.end_offset) for range_ in result.ranges] == [
        (ids[0], 10, 20),
        (ids[1], 20, 30),
        (ids[2], 30, 40),
    ]
    assert {range_.file and range_.file.partition for range_ in result.ranges} == {PartitionTuple.of_time(5, "day(13)")}
    assert result.left == ()


def test_of_files_with_one_start_the_longest_is_taken(folder: Folder) -> None:
    folder.put(footer(10, 15))
    longest = folder.put(footer(10, 20))
    result = folder.look(Ends(reached={0: 10}))
    assert [range_.id for range_ in result.ranges] == [longest]
    assert [(left_file.start_offset, left_file.reason) for left_file in result.left] == [(10, LeftFor.START)]


def test_files_with_one_start_yield_the_furthest(folder: Folder) -> None:
    """Two jobs were killed before they staged their uploads, with other cuts of the log."""
    expected = [folder.put(footer(10, 15)), folder.put(footer(15, 40))]
    folder.put(footer(10, 20))
    result = folder.look(Ends(reached={0: 10}))
    assert [range_.id for range_ in result.ranges] == expected
    assert [left_file.start_offset for left_file in result.left] == [10]


@pytest.mark.parametrize("is_first", [True, False])
def test_files_with_equal_offsets_yield_the_fullest(folder: Folder, is_first: bool) -> None:
    """The other one is a rewrite of it, which lacks rows that another engine had deleted."""
    ids = {rows: folder.put(replace(footer(10, 20), rows=rows)) for rows in ((10, 8) if is_first else (8, 10))}
    result = folder.look(Ends(reached={0: 10}))
    assert [range_.id for range_ in result.ranges] == [ids[10]]


def test_a_file_after_a_gap_is_left(folder: Folder) -> None:
    folder.put(footer(10, 20))
    folder.put(footer(21, 30))
    result = folder.look(Ends(reached={0: 10}))
    assert [range_.start_offset for range_ in result.ranges] == [10]
    assert [(left_file.start_offset, left_file.reason) for left_file in result.left] == [(21, LeftFor.START)]


def test_what_the_table_has_is_not_looked_at(folder: Folder) -> None:
    folder.put(footer(0, 10))
    assert folder.look(Ends(reached={0: 10})) == Unreferenced(ranges=(), left=())


@pytest.mark.parametrize("of", [{"topic": "other"}, {"cluster_id": "other"}])
def test_other_topics_files_are_no_business_of_ours(folder: Folder, of: dict[str, str]) -> None:
    folder.put(footer(10, 20, **of))
    assert folder.look(Ends(reached={0: 10})) == Unreferenced(ranges=(), left=())


def test_a_file_of_a_topic_that_was_made_again_is_left(folder: Folder) -> None:
    folder.put(footer(10, 20, topic_id=str(UUID(int=9))))
    result = folder.look(Ends(reached={0: 10}))
    assert (result.ranges, [left_file.reason for left_file in result.left]) == ((), [LeftFor.TOPIC])


def test_a_schema_version_that_nobody_knows_is_a_reason(folder: Folder) -> None:
    folder.put(footer(10, 20))
    result = folder.look(Ends(reached={0: 10}), versions=frozenset({1}))
    assert (result.ranges, [left_file.reason for left_file in result.left]) == ((), [LeftFor.SCHEMA])


def test_rows_of_two_days_fit_into_no_partition(folder: Folder) -> None:
    folder.put(footer(10, 20), days=(5, 6))
    result = folder.look(Ends(reached={0: 10}))
    assert (result.ranges, [left_file.reason for left_file in result.left]) == ((), [LeftFor.PARTITIONING])


@pytest.mark.parametrize(
    ("starts", "found", "at"),
    [
        ({}, {0, 7}, 0),
        ({}, {7}, None),
        ({1: {7}}, {7, 9}, 7),
        ({1: {7, 9}}, {7, 9}, 9),
        ({1: {7, 9}}, {7}, 7),
        ({2: {7}}, {7}, None),
    ],
)
def test_new_partition_begins_at_zero_or_its_known_start(
    starts: dict[int, set[int]], found: set[int], at: int | None
) -> None:
    assert Ends(reached={0: 5}, starts=starts).at(1, found) == at


@given(st.integers(0, 9), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_an_archived_partition_goes_on_where_it_ends(end: int, starts: set[int], found: set[int]) -> None:
    assert Ends(reached={1: end}, starts={1: starts}).at(1, found) == end


def test_a_file_s_range_is_its_footer_s_with_the_id_in_its_name() -> None:
    name = DataFileName(topic="orders", ulid=new_id(), extension="parquet", partition=4, start_offset=10)
    path = f"s3://bucket/data/{name}"
    info = file(path)
    made = range_of(path, footer(10, 20, partition=4), info)
    assert made is not None
    assert (made.id, made.partition, made.start_offset, made.end_offset) == (name.ulid, 4, 10, 20)
    assert (made.schema_version, made.leader_epoch, made.file) == (VERSION, NO_EPOCH, info)
    assert range_of(path, replace(footer(10, 20), origin=None), info) is None
    assert range_of(path, replace(footer(10, 20), schema_version=None), info) is None


def test_a_name_of_others_gets_an_id_of_its_own() -> None:
    first, second = range_id("s3://bucket/data/part-0.parquet"), range_id("s3://bucket/data/part-0.parquet")
    assert first != second
