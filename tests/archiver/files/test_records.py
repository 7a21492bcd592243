"""Contradictory records are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from archiver.files.records import CONTENT_COLUMNS, LOG_COLUMNS, Batches, Records

NOTHING = {"timestamp": 0, "key": None, "value": None, "headers": []}


def batches(*borders: tuple[int, int, int]) -> Batches:
    first, last, rows = (np.array(values, np.int64) for values in zip(*borders, strict=True))
    return Batches(first_offset=first, last_offset=last, rows=rows, times=first * 1_000)


def content(*offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([NOTHING | {"offset": offset} for offset in offsets], CONTENT_COLUMNS)


WHOLE: dict[str, Any] = {
    "start_offset": 10,
    "end_offset": 30,
    "content": content(10, 12, 20),
    "batches": batches((10, 14, 2), (20, 24, 1)),
}


def test_parts_are_whole_batches_that_follow_each_other() -> None:
    whole = Records(**WHOLE)
    first, second = whole.part(0, 1), whole.part(1, 2, times=np.array([7]))
    assert [(part.start_offset, part.end_offset) for part in (first, second)] == [(10, 15), (15, 30)]
    assert [part.content.column("offset").to_pylist() for part in (first, second)] == [[10, 12], [20]]
    assert first.columns.column("ingest_timestamp").to_pylist() == [10_000] * 2
    assert second.columns.column("ingest_timestamp").to_pylist() == [7]
    assert whole.columns.column("batch_start").to_pylist() == [10, 10, 20]
    assert whole.columns.column("batch_end").to_pylist() == [14, 14, 24]


def test_offsets_without_records_are_covered() -> None:
    none = Records.none(5, 9)
    assert (len(none), len(none.batches), none.columns.num_rows) == (0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": content(10, 12).select(["offset"])}, "the columns of records must be"),
        ({"content": content(10, 12)}, r"the same number of rows, and have \[2, 3\]"),
        ({"batches": batches((10, 14, 2))}, r"the same number of rows, and have \[2, 3\]"),
        ({"log": pa.RecordBatch.from_pylist([], LOG_COLUMNS)}, r"the same number of rows, and have \[0, 3\]"),
        ({"log": content(10, 12, 20)}, "the columns of records must be"),
        ({"end_offset": 24}, r"offsets of records must rise: .* are \(10, 25, 24\)"),
        ({"start_offset": 26}, r"offsets of records must rise: .* are \(26, 25, 30\)"),
        ({"start_offset": -1}, r"offsets of records must rise: .* are \(-1, 25, 30\)"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Records(**WHOLE | changes)
