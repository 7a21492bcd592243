"""`--where`, compared with plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.records import RECORDS
from archiver.errors import ConfigError
from archiver.records.selection import Selection
from archiver.records.where import Bounds, Where
from archiver.records.where_syntax import AllOf, AnyOf, BytesAre, Exists, Header, Not, NullTest, NumberIs
from archiver.replay.export import records
from tests.support.archive.lake import Lake

ROWS: list[dict[str, Any]] = [
    {"partition": 0, "offset": 0, "timestamp": -1, "key": None, "value": None, "headers": []},
    {"partition": 0, "offset": 1, "timestamp": 0, "key": b"", "value": b"", "headers": [{"key": b"a", "value": None}]},
    {"partition": 1, "offset": 2, "timestamp": 5, "key": b"order-1", "value": b"x\xff",
     "headers": [{"key": b"a", "value": b"1"}, {"key": b"a", "value": b"2"}]},
    {"partition": 2, "offset": 9, "timestamp": 1_769_817_600_000, "key": b"it's", "value": b"\x00\xff",
     "headers": [{"key": "ä".encode(), "value": b""}]},
]  # fmt: skip
BATCH = pa.RecordBatch.from_pylist([{"timestamp_type": 0, **row} for row in ROWS], RECORDS)


def chosen(text: str, batch: pa.RecordBatch = BATCH) -> list[int]:
    offsets: list[int] = Where.parse(text).filter(batch).column("offset").to_pylist()
    return offsets


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("offset < 2", [0, 1]),
        ("offset >= 2 AND offset != 9", [2]),
        ("offset in (0, 9, 77)", [0, 9]),
        ("offset not in (0, 9)", [1, 2]),
        ("not offset = 0", [1, 2, 9]),
        ("not not offset = 0", [0]),
        ("partition = 1 or offset = 0", [0, 2]),
        ("partition = 0 and offset = 0 or offset = 9", [0, 9]),
        ("partition = 0 and (offset = 0 or offset = 9)", [0]),
        ("time >= 2026-01-31T00:00:00Z", [9]),
        ("timestamp >= '2026-01-31T01:00:00+01:00'", [9]),
        ("time = -1", [0]),
        ("time <= 1970-01-01T00:00:00.005Z", [0, 1, 2]),
        ("key = ''", [1]),
        ("key = 'it''s'", [9]),
        ('key = "it\'s"', [9]),
        ("key is null", [0]),
        ("key is not null", [1, 2, 9]),
        ("key != 'order-1'", [1, 9]),
        ("not key = 'order-1'", [0, 1, 9]),
        ("key starts with 'order-'", [2]),
        ("key not starts with 'order-'", [0, 1, 9]),
        ("key ends with '1' or value contains 0xff", [2, 9]),
        ("value = 0x00FF", [9]),
        ("value = 0x", [1]),
        ("value > 'x'", [2]),
        ("header['a'] exists", [1, 2]),
        ("header['a'] is null", [1]),
        ("header['a'] = '2'", [2]),
        ("header['a'] != '2'", [2]),
        ("not header['a'] = '2'", [0, 1, 9]),
        ("header['ä'] in ('', '1')", [9]),
        ("header[0xc3a4] = ''", [9]),
        ("header['b'] exists", []),
    ],
)
def test_conditions(text: str, offsets: list[int]) -> None:
    assert chosen(text) == offsets
    for start in range(len(ROWS)):  # a slice shares its buffers with the whole
        expected = [row["offset"] for row in ROWS[start:] if row["offset"] in offsets]
        assert chosen(text, BATCH.slice(start)) == expected


@pytest.mark.parametrize(
    ("text", "position", "why"),
    [
        ("", 1, "expected partition"),
        ("offset", 7, "expected a comparison"),
        ("offset >", 9, "expected a number, found the end"),
        ("offset > 'a'", 10, "expected a number"),
        ("offset > 99999999999999999999", 10, "larger than any offset"),
        ("offset = 1 offset = 2", 12, "expected `and`, `or` or the end"),
        ("(offset = 1", 12, "expected `)`"),
        ("colour = 'red'", 1, "expected partition"),
        ("key = order-1", 7, "expected text in quotes"),
        ("key = 'abc", 7, "no closing quote"),
        ("key = 0x123", 7, "two hexadecimal digits"),
        ("key is nothing", 8, "expected `null`"),
        ("key not = 'a'", 9, "expected `in`"),
        ("header = 'a'", 8, "expected `[`"),
        ("header['a' = 'b'", 12, "expected `]`"),
        ("time > 2026-01-31T00:00:00", 8, "no zone"),
        ("time > 2026-13-31T00:00:00Z", 8, "not a time"),
        ("time > 2026-01-31T00:00:00.0001Z", 8, "whole milliseconds"),
        ("time > 'soon'", 8, "not a time"),
        ("offset = 1 && offset = 2", 12, "'&' means nothing"),
        ("offset = 1 and", 15, "found the end"),
        ("(" * 200 + "offset = 1" + ")" * 200, 101, "too many parentheses"),
    ],
)
def test_errors_name_the_position(text: str, position: int, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        Where.parse(text)
    assert f"at character {position}:" in error.value.message
    assert why in error.value.message


_numbers = st.builds(
    NumberIs,
    st.sampled_from(["partition", "offset", "time"]),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.integers(-2, 11),
)
_others = st.sampled_from([NullTest("key"), Exists(Header(b"a")), BytesAre("key", "=", b"")])
_conditions = st.recursive(
    _numbers | _others,
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda terms: AllOf(tuple(terms)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda terms: AnyOf(tuple(terms)))
    ),
    max_leaves=8,
)


@given(_conditions)
def test_bounds_leave_out_nothing_that_is_selected(condition: Any) -> None:
    where = Where("", condition)
    for row in where.filter(BATCH).to_pylist():
        bounds = where.bounds(row["partition"])
        assert bounds is not None
        assert bounds.low_offset <= row["offset"] <= bounds.high_offset
        assert bounds.low_time <= row["timestamp"] <= bounds.high_time


def test_bounds_are_as_narrow_as_what_is_written() -> None:
    where = Where.parse("partition in (0, 9) and offset >= 5 and not offset > 7 and time > 3")
    assert where.bounds(0) == Bounds(low_offset=5, high_offset=7, low_time=4, high_time=2**63 - 1)
    assert where.bounds(1) is None
    assert Where.parse("offset < 3 or offset > 8").bounds(0) == Bounds()
    assert Where.parse("offset < 3 and offset > 8").bounds(0) is None


def test_only_what_can_match_is_read(filled: Lake) -> None:
    archive = filled.archive()

    def ranges(text: str) -> list[tuple[int, int, int, int | None]]:
        return [
            (range_.partition, range_.start_offset, range_.end_offset, range_.min_timestamp)
            for range_ in Selection.parse(where=text).resolve(archive)
        ]

    assert ranges("partition = 1") == [(1, 0, 4, None)]
    assert ranges("offset in (3, 5)") == [(0, 3, 6, None), (1, 3, 4, None)]
    assert ranges("partition = 0 and time >= 1970-01-01T00:00:08Z") == [(0, 0, 12, 8_000)]
    assert ranges("offset < 0") == []
    offsets = [
        row["offset"]
        for batch in records(archive, Selection.parse(where="partition = 0 and time >= 1970-01-01T00:00:08Z"))
        for row in batch.to_pylist()
    ]
    assert offsets == [8, 9]


def test_files_that_are_older_are_not_opened(filled: Lake) -> None:
    archive = filled.archive()
    selection = Selection.parse(where="time >= 2026-01-01T00:00:00Z")
    for path in filled.folder.rglob("*.parquet"):
        path.unlink()
    assert [*records(archive, selection)] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  key =  'a  b'\n and\toffset > 3 ", "key = 'a  b' and offset > 3"),
        ("key = 'it''s  \"x'  or value = \"a  'b\"", "key = 'it''s  \"x' or value = \"a  'b\""),
    ],
)
def test_spaces_within_quotes_belong_to_the_condition(text: str, kept: str) -> None:
    assert Where.parse(text).text == kept
