"""Exports as JSON lines and Arrow streams."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.offset_order import offsets_of
from archiver.archive.records import RECORDS
from archiver.errors import RecordsRetired
from archiver.records.selection import Selection
from archiver.replay.export import records, write_arrow, write_jsonl
from archiver.replay.jsonl import from_json, to_json
from tests.support.archive.lake import Lake


def test_json_lines_lose_nothing(filled: Lake):
    stream = io.BytesIO()
    assert write_jsonl(filled.archive(), Selection(), stream) == 14
    lines = stream.getvalue().splitlines()
    assert len(lines) == 14
    assert json.loads(lines[0]) == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": -1,
        "timestamp_type": 0,
        "key": None,
        "value": {"base64": "AP8="},
        "headers": [["ä", "1"], [{"base64": "/w=="}, None]],
    }
    assert json.loads(lines[9])["value"] == "v9"


def test_arrow_stream(filled: Lake):
    stream = io.BytesIO()
    assert write_arrow(filled.archive(), Selection(partitions=(1,)), stream) == 4
    table = pa.ipc.open_stream(stream.getvalue()).read_all()
    assert table.schema.equals(RECORDS)
    assert table.schema.metadata == {b"topic": b"orders"}
    assert table["offset"].to_pylist() == [0, 1, 2, 3]


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_any_bytes_survive_json(data: bytes | None):
    assert from_json(json.loads(json.dumps(to_json(data), ensure_ascii=False))) == data


@pytest.mark.parametrize("value", [1, {"base64": 1}, {"text": "a"}, [], {"base64": "?"}])
def test_other_json_is_refused(value: object):
    with pytest.raises(ValueError):
        from_json(value)


def test_an_export_fails_if_records_are_retired_meanwhile(lake: Lake, archive: Any):
    fill(lake, archive, 5)
    reading = records(lake.archive(), Selection())
    first = next(reading)
    lake.retire(40)
    with pytest.raises(RecordsRetired, match=r"position=10, first_offset=40"):
        list(reading)
    assert first.column("offset").to_pylist() == list(range(10))


@pytest.mark.parametrize("start", [None, "3", "45"])
def test_an_export_begins_after_what_was_retired_before(lake: Lake, archive: Any, start: str | None):
    fill(lake, archive, 5)
    lake.retire(40)
    offsets = [
        offset for batch in records(lake.archive(), Selection.parse(start=start)) for offset in offsets_of(batch)
    ]
    assert offsets == list(range(max(40, int(start or 0)), 50))


def fill(lake: Lake, archive: Any, files: int) -> None:
    for start in range(0, 10 * files, 10):
        rows = [archive.row(offset=number, value=b"v") for number in range(start, start + 10)]
        lake.add(archive.rows, archive.batch(rows), start, start + 10)
