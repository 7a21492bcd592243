"""Selections, JSON lines and Arrow streams."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.records import RECORDS
from archiver.errors import ConfigError
from archiver.replay.export import records, write_arrow, write_jsonl
from archiver.replay.jsonl import from_json, to_json
from archiver.replay.selection import AtOffset, AtTime, Earliest, Latest, Selection, parse_point
from tests.support.archive.lake import Lake


@pytest.fixture
def filled(lake: Lake, archive: Any) -> Lake:
    odd = archive.row(
        offset=0, key=None, value=b"\x00\xff", headers=[("ä".encode(), b"1"), (b"\xff", None)], timestamp=None
    )
    rest = [archive.row(offset=i, key=b"k", value=b"v%d" % i, timestamp=1_000 * i) for i in range(1, 10)]
    lake.add(archive.rows, archive.batch([odd, *rest]), 0, 12)
    other = [archive.row(offset=i, partition=1, timestamp=500 * i) for i in range(4)]
    lake.add(archive.rows, archive.batch(other), 0, 4, partition=1)
    return lake


def offsets(lake: Lake, **selection: Any) -> list[tuple[int, int]]:
    return [
        (row["partition"], row["offset"])
        for batch in records(lake.archive(), Selection.parse(**selection))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("earliest", Earliest()),
        (" LATEST ", Latest()),
        ("0", AtOffset(0)),
        ("1200", AtOffset(1200)),
        ("1970-01-01T00:00:01Z", AtTime(1_000)),
        ("1970-01-01T01:00:00.5+01:00", AtTime(500)),
        ("1970-01-01T00:00:00.0000001Z", AtTime(0)),
        ("1970-01-01T00:00:00.000001Z", AtTime(1)),
        ("1969-12-31T23:59:59.9999Z", AtTime(0)),
    ],
)
def test_points(text: str, point: object):
    assert parse_point(text) == point


@pytest.mark.parametrize("text", ["", "-5", "yesterday", "2026-01-31", "2026-01-31T00:00:00", "1e3"])
def test_what_is_no_point(text: str):
    with pytest.raises(ConfigError, match="such as"):
        parse_point(text)


def test_selections(filled: Lake):
    assert offsets(filled) == [(0, i) for i in range(10)] + [(1, i) for i in range(4)]
    assert offsets(filled, start="2", end="5", partitions=(0,)) == [(0, 2), (0, 3), (0, 4)]
    assert offsets(filled, start="1970-01-01T00:00:01.5Z", end="1970-01-01T00:00:05Z") == [
        (0, 2),
        (0, 3),
        (0, 4),
        (1, 3),
    ]
    assert offsets(filled, start="latest") == []
    assert offsets(filled, start="1970-01-01T00:00:09.001Z") == []
    with pytest.raises(ConfigError, match=r"partition.*\[7\]"):
        offsets(filled, partitions=(0, 7))


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
