"""Timestamps with nanoseconds as one column."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import LedgerState, MappingOptions, assign, compile_mapping
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.columns.options import NEW_TABLES
from schema_mapping.errors import KernelError
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.well_known import (
    EPOCH,
    FIRST,
    HEAD,
    LAST,
    YEAR_9999_ENDS,
    YEAR_ONE,
    decoded,
    message,
    through_parquet,
    types_of,
)

TIMESTAMPS = MappingOptions(well_known_types="timestamp")
TIMES = """
    google.protobuf.Timestamp t = 1; repeated google.protobuf.Timestamp ts = 2;
    map<string, google.protobuf.Timestamp> by = 3; N below = 4; repeated N many = 5;
    oneof o { google.protobuf.Timestamp a = 6; google.protobuf.Timestamp b = 7; }
    google.protobuf.Duration d = 8; google.protobuf.StringValue w = 9;
    message N { google.protobuf.Timestamp t = 1; repeated google.protobuf.Timestamp ts = 2; }
"""


def with_nanos(body: str) -> MessageMapping:
    return compile_mapping(message(body), options=TIMESTAMPS)


def test_times_with_nanoseconds() -> None:
    mapping = with_nanos(TIMES)
    types = types_of(mapping)
    assert {name: kind for name, kind in types.items() if "struct" not in kind} == {
        "t": "timestamptz",
        "t_nanos": "int",
        "ts": "list<timestamptz>",
        "ts_nanos": "list<int>",
        "by": "map<string, timestamptz>",
        "by_nanos": "list<int>",
        "a": "timestamptz",
        "a_nanos": "int",
        "b": "timestamptz",
        "b_nanos": "int",
    }
    assert list(types) == [
        *("t", "t_nanos", "ts", "ts_nanos", "by", "by_nanos", "below", "many"),
        *("a", "a_nanos", "b", "b_nanos", "d", "w"),
    ]
    assert "t_nanos" in types["below"], "at any depth"
    assert "ts_nanos" in types["many"]
    made = GetMessageClass(message(TIMES))
    ticks = [{"seconds": n, "nanos": 123_456_000 + n} for n in range(5)]
    full = made(
        t=ticks[1],
        ts=ticks,
        by={"x": ticks[4]},
        below={"t": ticks[2], "ts": ticks[:2]},
        many=[{"ts": ticks[3:]}, {}, {"t": {}, "ts": ticks}],
        b=ticks[3],
    )
    row, empty, present = decoded(mapping, full, made(), made(t={}, a={}))
    assert row["t"] == datetime(1970, 1, 1, 0, 0, 1, 123456, tzinfo=UTC)
    assert (row["t_nanos"], row["ts_nanos"], row["by_nanos"]) == (1, [0, 1, 2, 3, 4], [4])
    assert (row["below"]["t_nanos"], row["below"]["ts_nanos"]) == (2, [0, 1])
    assert [item["ts_nanos"] for item in row["many"]] == [[3, 4], [], [0, 1, 2, 3, 4]]
    assert [item["t_nanos"] for item in row["many"]] == [None, None, 0]
    assert (row["a_nanos"], row["b_nanos"]) == (None, 3)
    assert (empty["t_nanos"], empty["ts_nanos"], empty["by_nanos"], empty["a_nanos"]) == (None, [], [], None)
    assert (present["t"], present["t_nanos"], present["a"], present["a_nanos"]) == (EPOCH, 0, EPOCH, 0)
    assert [value["__raw__"] for value in (row, empty, present)] == [None, None, None]


@pytest.mark.parametrize(
    ("seconds", "nanos", "column", "rest"),
    [
        (0, 1, EPOCH, 1),
        (1_700_000_000, 123_456_789, datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC), 789),
        (-1, 999_999_999, EPOCH - timedelta(microseconds=1), 999),
        (YEAR_ONE, 7, FIRST, 7),
        (YEAR_9999_ENDS, 999_999_999, LAST, 999),
    ],
)
def test_nanoseconds_come_back(seconds: int, nanos: int, column: datetime, rest: int) -> None:
    body = "google.protobuf.Timestamp t = 1; map<int32, google.protobuf.Timestamp> by = 2;"
    parts = {"seconds": seconds, "nanos": nanos}
    (row,) = decoded(with_nanos(body), GetMessageClass(message(body))(t=parts, by={5: parts}))
    assert (row["t"], row["t_nanos"], row["by"], row["by_nanos"]) == (column, rest, [(5, column)], [rest])
    assert row["__raw__"] is None


@pytest.mark.parametrize(
    ("seconds", "nanos", "column", "rest"),
    [
        (0, -1, EPOCH - timedelta(microseconds=1), 999),
        (0, -1_000, EPOCH - timedelta(microseconds=1), 0),
        (0, 1_000_000_001, EPOCH + timedelta(seconds=1), 1),
        (YEAR_ONE - 1, 5, None, None),
        (YEAR_9999_ENDS + 1, 5, None, None),
        ((1 << 63) - 1, (1 << 31) - 1, None, None),
        (-(1 << 63), -(1 << 31), None, None),
    ],
)
def test_times_beyond_their_columns_are_kept_raw(
    seconds: int, nanos: int, column: datetime | None, rest: int | None
) -> None:
    body = "google.protobuf.Timestamp t = 1; repeated google.protobuf.Timestamp ts = 2;"
    made = GetMessageClass(message(body))
    parts = {"seconds": seconds, "nanos": nanos}
    single, many = decoded(with_nanos(body), made(t=parts), made(ts=[parts, {"nanos": 3}]))
    assert (single["t"], single["t_nanos"]) == (column, rest)
    assert many["ts_nanos"] == [rest or 0, 3]
    assert single["__raw__"] is not None
    assert many["__raw__"] is not None


@pytest.mark.parametrize(
    "value",
    [
        b"\x0a\x04\x10\x05\x08\x01",  # nanoseconds before seconds
        b"\x0a\x04\x08\x01\x10\x00",  # a default on the wire
        b"\x0a\x02\x08\x01\x0a\x02\x10\x05",  # in two parts, which are merged
        b"\x0a\x05\x08\x01\x10\x85\x00",  # a varint that is too long
        b"\x0a\x06\x08\x01\x10\x05\x18\x01",  # an unknown field
    ],
)
def test_other_bytes_of_a_time_are_kept_raw(value: bytes) -> None:
    mapping = with_nanos("google.protobuf.Timestamp t = 1;")
    rows = mapping.decode(pa.array([value]))
    assert rows.field("__raw__").to_pylist() == [value]
    assert mapping.encode(rows).to_pylist() == [value]
    assert rows.field("t").to_pylist() == [EPOCH + timedelta(seconds=1)]


def test_nanoseconds_of_a_key_twice() -> None:
    entry = b"\x0a\x09\x0a\x01k\x12\x04\x08\x01\x10"
    value = entry + b"\x05" + entry + b"\x06"
    (row,) = with_nanos("map<string, google.protobuf.Timestamp> by = 1;").decode(pa.array([value])).to_pylist()
    assert (row["by"], row["by_nanos"]) == ([("k", EPOCH + timedelta(seconds=1))], [6])
    assert row["__raw__"] == value


def changed(rows: pa.StructArray, name: str, column: pa.Array) -> pa.StructArray:
    children = [column if field.name == name else rows.field(index) for index, field in enumerate(rows.type)]
    return pa.StructArray.from_arrays(children, fields=list(rows.type))


def test_times_without_their_nanoseconds() -> None:
    body = "google.protobuf.Timestamp t = 1; repeated google.protobuf.Timestamp ts = 2;"
    mapping, made = with_nanos(body), GetMessageClass(message(body))
    fine, whole = {"seconds": 1, "nanos": 5_007}, {"seconds": 1, "nanos": 5_000}
    values = [made(t=fine, ts=[fine, fine]).SerializeToString(), made(ts=[fine]).SerializeToString()]
    rows = mapping.decode(pa.array(values))
    without = changed(rows, "t_nanos", pa.nulls(2, pa.int32()))
    without = changed(without, "ts_nanos", pa.array([None, [9]], without.field("ts_nanos").type))
    nine = {"seconds": 1, "nanos": 5_009}
    assert mapping.encode(without).to_pylist() == [
        made(t=whole, ts=[whole, whole]).SerializeToString(),
        made(ts=[nine]).SerializeToString(),
    ]


@pytest.mark.parametrize("nanos", [[1], [1, 2, 3], []])
def test_more_or_fewer_nanoseconds_than_times(nanos: list[int]) -> None:
    body = "int32 n = 4; repeated google.protobuf.Timestamp ts = 7;"
    mapping = with_nanos(body)
    rows = mapping.decode(pa.array([b"", GetMessageClass(message(body))(ts=[{}, {}]).SerializeToString()]))
    wrong = changed(rows, "ts_nanos", pa.array([[], nanos], rows.field("ts_nanos").type))
    with pytest.raises(KernelError, match="more or fewer elements than its column of times") as caught:
        mapping.encode(wrong)
    assert caught.value.context == {"row": 1, "field_number": 7}


def test_nanoseconds_through_parquet(tmp_path: Path) -> None:
    made = GetMessageClass(message(TIMES))
    ticks = [{"seconds": n, "nanos": 999_999_900 + n} for n in range(60)]
    values = [
        made(t=ticks[n], ts=ticks[: n % 4], by={str(n): ticks[n]}, many=[{"ts": ticks[: n % 3]}] * (n % 2), a=ticks[n])
        for n in range(50)
    ]
    data = pa.array([value.SerializeToString() for value in values], pa.binary())
    mapping = with_nanos(TIMES)
    back = through_parquet(mapping, data, tmp_path)
    assert mapping.encode(back.take(pa.array([40, 3, 17]))).equals(data.take(pa.array([40, 3, 17])))


def names_of(body: str, state: LedgerState | None = None) -> tuple[list[str], LedgerState]:
    assigned = assign(state or LedgerState(), value=compile_text(f"{HEAD} message M {{ {body} }}"), options=NEW_TABLES)
    fields = assigned.iceberg_schema.find_type("val").fields
    return [field.name for field in fields if field.name[:2] != "__"], assigned.state


def test_names_of_nanoseconds() -> None:
    names, state = names_of("google.protobuf.Timestamp at = 3; int32 at_nanos = 5;")
    assert names == ["at", "at_nanos_3", "at_nanos"], "a field keeps its name"
    assert names_of("google.protobuf.Timestamp made = 3; int32 at_nanos = 5;", state)[0] == [
        *("made", "made_nanos", "at_nanos"),
    ]
    names, state = names_of("google.protobuf.Timestamp at = 3;")
    ids = {entry.name: entry.field_id for entry in state.entries}
    docs = {entry.name: entry.doc for entry in state.entries}
    assert docs["at_nanos"] == "nanoseconds of `at` below its microseconds, 0 to 999"
    names, again = names_of("google.protobuf.Timestamp at = 3; int32 at_nanos = 5;", state)
    assert names == ["at", "at_nanos", "at_nanos_5"], "a column keeps its name"
    assert ids.items() <= {entry.name: entry.field_id for entry in again.entries}.items()
    gone, _ = names_of("int32 x = 1;", again)
    assert gone == ["x", "at", "at_nanos", "at_nanos_5"]


def test_a_time_that_becomes_a_list_gets_other_columns() -> None:
    _, state = names_of("google.protobuf.Timestamp at = 3;")
    first = {entry.name: entry.field_id for entry in state.entries}
    names, _ = names_of("repeated google.protobuf.Timestamp at = 3;", state)
    assert names == [
        *(f"at_deleted_{first['at']}", "at"),
        *(f"at_nanos_deleted_{first['at_nanos']}", "at_nanos"),
    ]


@pytest.mark.parametrize("chosen", ["struct", "native", "timestamp"])
def test_a_table_keeps_its_choice(chosen: Any) -> None:
    source = compile_text(f"{HEAD} message M {{ google.protobuf.Timestamp t = 1; }}")
    wider = compile_text(f"{HEAD} message M {{ google.protobuf.Timestamp t = 1; google.protobuf.Timestamp u = 2; }}")
    first = assign(LedgerState(), value=source, options=MappingOptions(well_known_types=chosen))
    same = assign(first.state, value=source, options=NEW_TABLES)
    assert (same.version, same.fingerprint, same.is_new) == (first.version, first.fingerprint, False)
    second = assign(first.state, value=wider, options=NEW_TABLES)
    assert second.row.options == first.row.options
    kinds = {field.name: str(field.field_type) for field in second.iceberg_schema.find_type("val").fields}
    assert kinds["u"].partition("<")[0] == kinds["t"].partition("<")[0]
    assert kinds["t"].startswith("struct<" if chosen == "struct" else "timestamptz")
    assert ("u_nanos" in kinds) == (chosen == "timestamp")
    raw = assign(second.state, options=MappingOptions())
    assert assign(raw.state, value=wider, options=NEW_TABLES).version == second.version, "also after raw values"
    rebuilt = rebuild_ledger([first.row, second.row])
    assert assign(rebuilt, value=wider, options=NEW_TABLES).row == second.row, "also of a rebuilt registry"


def test_a_new_table_has_times_with_nanoseconds() -> None:
    assert names_of("google.protobuf.Timestamp t = 1; google.protobuf.Duration d = 2;")[0] == ["t", "t_nanos", "d"]
    raw = assign(LedgerState(), options=MappingOptions())
    assert names_of("google.protobuf.Timestamp t = 1;", raw.state)[0] == ["t", "t_nanos"]


def test_microseconds_alone_get_nanoseconds_later() -> None:
    source = compile_text(f"{HEAD} message M {{ google.protobuf.Timestamp t = 1; }}")
    first = assign(LedgerState(), value=source, options=MappingOptions(well_known_types="native"))
    second = assign(first.state, value=source, options=TIMESTAMPS)
    assert [(change.kind, change.column) for change in second.changes] == [(ChangeKind.ADDED, "val.t_nanos")]
