"""Watermarks and offsets by time."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from archiver.archive.watermarks import record_ends
from archiver.storage.formats import SegmentFormats
from archiver.storage.parquet import ParquetFormat
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import Lake


def test_watermarks(lake: Lake, archive: Any, filled: list[Any]):
    opened = lake.archive()
    assert opened.partitions == (0, 1)
    assert opened.watermarks(0) == (1, 300)
    assert opened.watermarks(1) == (1, 60)
    assert opened.watermarks(9) == (0, 0)
    lake.add(archive.rows, None, 300, 310)
    assert opened.refresh().next_offsets == {0: 310, 1: 60}
    assert opened.watermarks(0) == (1, 310)
    lake.rewrite(with_metrics=False)
    opened.refresh()
    assert opened.watermarks(0) == (1, 310)
    assert opened.watermarks(1) == (1, 60)


def test_ends_of_records(lake: Lake, archive: Any, filled: list[Any]):
    opened = lake.archive()
    assert record_ends(opened.snapshot) == {0: 299, 1: 60}
    lake.add(archive.rows, None, 300, 310)
    assert opened.refresh().next_offsets[0] == 310
    assert record_ends(opened.snapshot) == {0: 299, 1: 60}, "no file has a record of the last ten"
    lake.rewrite(with_metrics=False)
    assert record_ends(opened.refresh()) == {}, "nobody knows"


class CountingFormat:
    name, extension = "parquet", "parquet"

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, objects: Any, path: str, **options: Any) -> Any:
        self.opened.append(path)
        return ParquetFormat().open(objects, path, **options)


@pytest.mark.parametrize("first", [0, 7])
def test_a_watermark_that_bounds_tell_opens_no_file(lake: Lake, archive: Any, first: int):
    lake.add(archive.rows, archive.batch(rows_of(archive, range(first, first + 9))), first, first + 9)
    counting = CountingFormat()
    assert lake.archive(formats=SegmentFormats(written=counting)).watermarks(0) == (first, first + 9)
    assert counting.opened == []


def test_watermarks_see_deletes(lake: Lake, filled: list[Any]):
    first = min(file.file_path for file in lake.files())
    lake.delete_positions({first: range(50)})
    assert lake.archive().watermarks(0) == (55, 300)


@pytest.mark.parametrize("rewritten", [False, True])
def test_offsets_of_times(lake: Lake, archive: Any, rewritten: bool):
    times = [50, 10, 80, 20, 70, None, 60, 90, 30]
    for start in (0, 3, 6):
        rows = [archive.row(offset=start + i, timestamp=times[start + i]) for i in range(3)]
        lake.add(archive.rows, archive.batch(rows), start, start + 3)
    log_append = archive.row(offset=9, timestamp=5, timestamp_type=1, append_timestamp=100)
    lake.add(archive.rows, archive.batch([log_append]), 9, 10)
    if rewritten:
        shuffled = random.Random(4).sample(range(10), 10)
        lake.rewrite(lambda table: table.take(pa.array(shuffled)), row_group_size=4, with_metrics=False)
    opened = lake.archive()
    assert [opened.offset_for_time(0, time) for time in (0, 10, 51, 80, 81, 91, 100, 101)] == [
        0,
        0,
        2,
        2,
        7,
        9,
        9,
        None,
    ]
    assert opened.offset_for_time(5, 0) is None
