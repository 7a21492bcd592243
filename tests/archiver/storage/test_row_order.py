"""The order of rows in a file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet import ParquetFormat
from archiver.storage.row_order import RowOrder
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile

Places = list[tuple[int, int]]


def batch(places: Places) -> pa.RecordBatch:
    kafka = [{"partition": partition, "offset": offset} for partition, offset in places]
    kind = pa.struct([("partition", pa.int32()), ("offset", pa.int64())])
    return pa.RecordBatch.from_arrays([pa.array(kafka, kind)], names=["kafka"])


@pytest.mark.parametrize(
    ("groups", "among", "is_sorted"),
    [
        ([[[(0, 1), (0, 2)], [(0, 3), (1, 0)]]], [True], True),
        ([[[(0, 1), (0, 1)]]], [True], True),
        ([[[(0, 2), (0, 1)]]], [False], False),
        ([[[(0, 2)], [(0, 1)]]], [False], False),
        ([[[(0, 2)]], [[(0, 1)]]], [True, True], False),
        ([[[(1, 0), (0, 1)]]], [False], False),
        ([[[]], [[(0, 1)]]], [True, True], True),
    ],
)
def test_order_within_row_groups_and_of_all_rows(
    groups: list[list[Places]], among: list[bool], is_sorted: bool
) -> None:
    order = RowOrder()
    assert [order.add([batch(value) for value in group]) for group in groups] == among
    assert order.is_sorted is is_sorted


@pytest.mark.parametrize(
    "rows",
    [
        pa.RecordBatch.from_pydict({"val": [1]}),
        pa.RecordBatch.from_pydict({"kafka": [1]}),
        pa.RecordBatch.from_pydict({"kafka": [{"offset": 1}]}),
        pa.RecordBatch.from_pydict({"kafka": [{"partition": 0, "offset": None}]}),
        pa.RecordBatch.from_pydict({"kafka": [{"partition": 0, "offset": 1}, None]}),
    ],
)
def test_rows_without_a_place_are_in_no_order(rows: pa.RecordBatch) -> None:
    order = RowOrder()
    assert not order.add([rows])
    assert not order.is_sorted


@pytest.mark.parametrize("offsets", [[1, 2, 3], [1, 3, 2]])
def test_a_file_claims_the_order_that_its_rows_have(archive: Any, tmp_path: Path, offsets: list[int]) -> None:
    path = tmp_path / "file.parquet"
    with closing(SpoolFile.create(path)) as spooled:
        writer = ParquetFormat().start(spooled, SegmentLayout.of_mapping(archive.rows, {}))
        for offset in offsets:
            writer.write(archive.batch([archive.row(offset=offset)]))
        info = writer.close(origin=None, path=path.as_uri())
    is_sorted = offsets == sorted(offsets)
    assert info.is_sorted is is_sorted
    assert bool(pq.read_metadata(path).row_group(0).sorting_columns) is is_sorted
