"""Well-known types and unsigned longs as one column each: types, values, raw values, changed options."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import LedgerState, MappingOptions, assign, compile_mapping
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.columns.options import NEW_TABLES
from schema_mapping.errors import KernelError, MappingOptionsError
from schema_mapping.formats import mapping_from_json
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.protobuf.descriptors import find_descriptor
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import compile_text, descriptor_of

FILES = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
HEAD = 'syntax = "proto3"; package t; ' + " ".join(f'import "google/protobuf/{name}.proto";' for name in FILES)
OPTIONS = MappingOptions(well_known_types="native", uint64="decimal")
TIMESTAMPS = MappingOptions(well_known_types="timestamp")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
YEAR_ONE = -62_135_596_800
YEAR_9999_ENDS = 253_402_300_799

COLUMNS = {
    "Timestamp": "timestamptz",
    "Duration": "long",
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int64Value": "long",
    "UInt64Value": "decimal(20, 0)",
    "Int32Value": "int",
    "UInt32Value": "int",
    "BoolValue": "boolean",
    "StringValue": "string",
    "BytesValue": "binary",
    "Struct": "string",
    "Value": "string",
    "ListValue": "string",
}


def message(body: str) -> Descriptor:
    return descriptor_of(f"{HEAD} message M {{ {body} }}")


def native(body: str) -> MessageMapping:
    return compile_mapping(message(body), options=OPTIONS)


def types_of(mapping: MessageMapping) -> dict[str, str]:
    return {field.name: str(field.field_type) for field in mapping.iceberg_type.fields if field.name[:2] != "__"}


def decoded(mapping: MessageMapping, *values: Any) -> list[dict[str, Any]]:
    """The rows of messages, all bytes of which come back."""
    data = pa.array([value.SerializeToString() for value in values], pa.binary())
    rows = mapping.decode(data)
    rows.validate(full=True)
    assert rows.field("__err__").null_count == len(rows)
    assert mapping.encode(rows).equals(data)
    pylist: list[dict[str, Any]] = rows.to_pylist()
    return pylist


@pytest.mark.parametrize("name", COLUMNS)
def test_each_is_one_column_wherever_it_is(name: str) -> None:
    kind = f"google.protobuf.{name}"
    body = f"{kind} one = 1; repeated {kind} many = 2; map<string, {kind}> by = 3;"
    body += f"oneof o {{ {kind} first = 4; {kind} second = 5; }}"
    mapping = native(body)
    column = COLUMNS[name]
    assert types_of(mapping) == {
        "one": column,
        "many": f"list<{column}>",
        "by": f"map<string, {column}>",
        "first": column,
        "second": column,
    }
    assert mapping.cuts == ()
    made = GetMessageClass(message(body))
    full = made()
    full.one.SetInParent()
    full.many.add()
    full.by["k"].SetInParent()
    full.second.SetInParent()
    row, empty = decoded(mapping, full, made())
    assert row["one"] == row["second"] == row["many"][0] == row["by"][0][1]
    assert row["one"] is not None
    assert row["first"] is None
    assert (row["__raw__"] is None) == (name != "Value"), "a Value with nothing set has no JSON of its own"
    assert [empty[column] for column in ("one", "many", "by", "first", "second")] == [None, [], [], None, None]
    assert empty["__raw__"] is None


@pytest.mark.parametrize("name", ["Any", "Empty", "FieldMask"])
def test_others_stay_structs(name: str) -> None:
    assert types_of(native(f"google.protobuf.{name} one = 1;"))["one"].startswith("struct<")


def test_without_the_options_all_are_structs_and_longs() -> None:
    body = " ".join(f"google.protobuf.{name} f{number} = {number};" for number, name in enumerate(COLUMNS, start=1))
    mapping = compile_mapping(message(f"{body} uint64 u = 100;"))
    assert all(kind.startswith("struct<") for name, kind in types_of(mapping).items() if name != "u")
    assert types_of(mapping)["u"] == "long"


@pytest.mark.parametrize("chosen", [{"well_known_types": "native"}, {"uint64": "decimal"}])
def test_the_options_are_apart(chosen: dict[str, Any]) -> None:
    mapping = compile_mapping(
        message("google.protobuf.UInt64Value w = 1; uint64 u = 2;"), options=MappingOptions(**chosen)
    )
    wrapper, plain = types_of(mapping).values()
    assert (wrapper if "well_known_types" in chosen else plain) in {"long", "decimal(20, 0)"}
    assert (plain == "decimal(20, 0)") == ("uint64" in chosen)
    assert wrapper.startswith("struct<") == ("uint64" in chosen)


def test_a_root_is_a_struct_whatever_its_type() -> None:
    for kind in (timestamp_pb2.Timestamp, struct_pb2.Struct, wrappers_pb2.UInt64Value, duration_pb2.Duration):
        assert types_of(compile_mapping(kind.DESCRIPTOR, options=OPTIONS)) != {}
    assert types_of(compile_mapping(struct_pb2.Struct.DESCRIPTOR, options=OPTIONS)) == {"fields": "map<string, string>"}
    assert types_of(compile_mapping(wrappers_pb2.UInt64Value.DESCRIPTOR, options=OPTIONS)) == {
        "value": "decimal(20, 0)"
    }


def test_a_message_that_only_bears_the_name_is_a_struct() -> None:
    imposter = 'syntax = "proto3"; package google.protobuf; message Timestamp { int64 seconds = 1; string zone = 2; }'
    source = 'syntax = "proto3"; package t; import "imposter.proto"; message M { google.protobuf.Timestamp t = 1; }'
    mapping = compile_mapping(
        find_descriptor(compile_text(source, imports={"imposter.proto": imposter})), options=OPTIONS
    )
    assert "zone" in types_of(mapping)["t"]


def test_a_delimited_message() -> None:
    text = """
    edition = "2023"; package t; import "google/protobuf/timestamp.proto"; import "google/protobuf/struct.proto";
    import "google/protobuf/wrappers.proto";
    message M {
      google.protobuf.Timestamp t = 1 [features.message_encoding = DELIMITED];
      repeated google.protobuf.Struct s = 2 [features.message_encoding = DELIMITED];
      google.protobuf.StringValue w = 3 [features.message_encoding = DELIMITED];
    }
    """
    mapping = compile_mapping(descriptor_of(text), options=OPTIONS)
    made = GetMessageClass(descriptor_of(text))
    (row,) = decoded(mapping, made(t={"seconds": 1}, s=[{"a": True}, {}], w={"value": "x"}))
    assert (row["t"], row["s"], row["w"]) == (EPOCH + timedelta(seconds=1), ['{"a":true}', "{}"], "x")
    assert row["__raw__"] is None


@pytest.mark.parametrize(
    ("seconds", "nanos", "column", "exact"),
    [
        (0, 0, EPOCH, True),
        (1_700_000_000, 123_456_000, datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC), True),
        (-1, 999_999_000, EPOCH - timedelta(microseconds=1), True),
        (YEAR_ONE, 0, FIRST, True),
        (YEAR_9999_ENDS, 999_999_000, LAST, True),
        (0, 1, EPOCH, False),
        (-1, 999_999_999, EPOCH - timedelta(microseconds=1), False),
        (YEAR_9999_ENDS, 999_999_999, LAST, False),
        (0, -1, EPOCH - timedelta(microseconds=1), False),
        (0, -1_000, EPOCH - timedelta(microseconds=1), False),
        (0, 1_000_000_000, EPOCH + timedelta(seconds=1), False),
        (YEAR_ONE - 1, 0, None, False),
        (YEAR_9999_ENDS + 1, 0, None, False),
        (YEAR_ONE, -1, None, False),
        ((1 << 63) - 1, (1 << 31) - 1, None, False),
        (-(1 << 63), -(1 << 31), None, False),
    ],
)
def test_timestamps(seconds: int, nanos: int, column: datetime | None, exact: bool) -> None:
    body = "google.protobuf.Timestamp t = 1; repeated google.protobuf.Timestamp ts = 2;"
    made = GetMessageClass(message(body))
    parts = {"seconds": seconds, "nanos": nanos}
    one, many = decoded(native(body), made(t=parts), made(ts=[parts, {}]))
    assert one["t"] == column
    assert many["ts"] == [column or (LAST if seconds > 0 else FIRST), EPOCH], "a list has no nulls"
    assert [one["__raw__"] is None, many["__raw__"] is None] == [exact, exact]


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
    one, many = decoded(with_nanos(body), made(t=parts), made(ts=[parts, {"nanos": 3}]))
    assert (one["t"], one["t_nanos"]) == (column, rest)
    assert many["ts_nanos"] == [rest or 0, 3]
    assert one["__raw__"] is not None
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
    rows = mapping.decode(data)
    assert rows.field("__raw__").null_count == len(rows)
    pq.write_table(pa.table({"val": rows}), tmp_path / "rows.parquet")
    back = pq.read_table(tmp_path / "rows.parquet")["val"].combine_chunks()
    assert mapping.encode(back).equals(data)
    assert mapping.encode(back.slice(7, 9)).equals(data.slice(7, 9))
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


@pytest.mark.parametrize(
    ("seconds", "nanos", "column", "exact"),
    [
        (0, 0, 0, True),
        (1, 500_000_000, 1_500_000, True),
        (-1, -500_000_000, -1_500_000, True),
        (315_576_000_000, 0, 315_576_000_000_000_000, True),
        (9_223_372_036_854, 775_807_000, (1 << 63) - 1, True),
        (-9_223_372_036_854, -775_808_000, -(1 << 63), True),
        (0, 1, 0, False),
        (0, -1, 0, False),
        (-1, 500_000_000, -500_000, False),
        (1, -1_000, 999_999, False),
        (0, 1_000_000_000, 1_000_000, False),
        (9_223_372_036_854, 775_808_000, None, False),
        ((1 << 63) - 1, 0, None, False),
    ],
)
def test_durations(seconds: int, nanos: int, column: int | None, exact: bool) -> None:
    body = "google.protobuf.Duration d = 1; map<int32, google.protobuf.Duration> by = 2;"
    made = GetMessageClass(message(body))
    parts = {"seconds": seconds, "nanos": nanos}
    one, many = decoded(native(body), made(d=parts), made(by={5: parts}))
    assert (one["d"], many["by"]) == (column, [(5, column)])
    assert [one["__raw__"] is None, many["__raw__"] is None] == [exact, exact]


def test_wrappers_tell_absent_from_default() -> None:
    body = "google.protobuf.UInt64Value u = 1; google.protobuf.StringValue s = 2; google.protobuf.BoolValue b = 3;"
    made = GetMessageClass(message(body))
    absent, default, full = decoded(
        native(body), made(), made(u={}, s={}, b={}), made(u={"value": 2**64 - 1}, s={"value": "x"}, b={"value": True})
    )
    assert [tuple(row[name] for name in "usb") for row in (absent, default, full)] == [
        (None, None, None),
        (Decimal(0), "", False),
        (Decimal(2**64 - 1), "x", True),
    ]
    assert [row["__raw__"] for row in (absent, default, full)] == [None, None, None]


@pytest.mark.parametrize("name", COLUMNS)
def test_unknown_fields_inside_are_kept_raw(name: str) -> None:
    body = f"google.protobuf.{name} one = 1;"
    value = b"\x0a\x04\xa2\x06\x01x"
    (row,) = native(body).decode(pa.array([value])).to_pylist()
    assert (row["__raw__"], row["__err__"], row["__unrecognized__"]) == (value, None, None)
    assert row["one"] is not None


def test_unsigned_longs_as_decimals() -> None:
    body = """
    uint64 u = 1; fixed64 f = 2; optional uint64 o = 3; repeated uint64 us = 4; repeated fixed64 fs = 5;
    map<uint64, fixed64> by = 6; repeated uint64 loose = 7 [packed = false]; int64 i = 8;
    """
    made = GetMessageClass(message(body))
    most = 2**64 - 1
    numbers = (0, 1, 2**63, most)
    full = made(u=most, f=2**63, o=0, us=numbers, fs=numbers, by=dict.fromkeys(numbers, most), loose=numbers, i=-1)
    row, empty = decoded(native(body), full, made())
    assert (row["u"], row["f"], row["o"], row["i"]) == (most, 2**63, 0, -1)
    assert row["us"] == row["fs"] == row["loose"] == list(map(Decimal, numbers))
    assert sorted(row["by"]) == [(Decimal(number), Decimal(most)) for number in numbers]
    assert (empty["u"], empty["f"], empty["o"], empty["us"]) == (0, 0, None, [])
    assert (row["__raw__"], empty["__raw__"]) == (None, None)


def test_a_key_twice_among_decimals() -> None:
    entry = b"\x0a\x0d\x08" + b"\xff" * 9 + b"\x01\x10\x05"
    (row,) = native("map<uint64, uint64> by = 1;").decode(pa.array([entry + entry[:-1] + b"\x06"])).to_pylist()
    assert row["by"] == [(Decimal(2**64 - 1), Decimal(6))]
    assert row["__raw__"] is not None


def test_through_parquet(tmp_path: Path) -> None:
    body = """
    google.protobuf.Timestamp t = 1; uint64 u = 2; google.protobuf.Struct s = 3;
    repeated google.protobuf.Duration d = 4; map<uint64, google.protobuf.Timestamp> by = 5; repeated uint64 us = 6;
    """
    made = GetMessageClass(message(body))
    values = [
        made(t={"seconds": n, "nanos": 1_000 * n}, u=2**64 - 1 - n, s={"n": n}, d=[{"seconds": -n}], by={n: {}}, us=[n])
        for n in range(1, 50)
    ]
    data = pa.array([value.SerializeToString() for value in values], pa.binary())
    mapping = native(body)
    rows = mapping.decode(data)
    assert rows.field("__raw__").null_count == len(rows)
    pq.write_table(pa.table({"val": rows}), tmp_path / "rows.parquet")
    back = pq.read_table(tmp_path / "rows.parquet")["val"].combine_chunks()
    assert mapping.encode(back).equals(data)
    assert mapping.encode(back.slice(7, 9)).equals(data.slice(7, 9))


@pytest.mark.parametrize("text", ["", "{", '{"a"}', "[1]", "1", '{"a":1}x', '{"a":01}', '{"a":"\\ud800"}', '{"a":nul}'])
def test_a_text_that_is_no_struct_is_named(text: str) -> None:
    mapping = native("int32 n = 4; google.protobuf.Struct s = 7;")
    rows = mapping.decode(pa.array([b"", b"\x3a\x00"]))
    children = [
        pa.array([None, text]) if field.name == "s" else rows.field(index) for index, field in enumerate(rows.type)
    ]
    changed = pa.StructArray.from_arrays(children, fields=list(rows.type))
    with pytest.raises(KernelError, match="isn't the JSON") as caught:
        mapping.encode(changed)
    assert caught.value.context == {"row": 1, "field_number": 7}


def test_options_that_no_mapping_has() -> None:
    with pytest.raises(MappingOptionsError, match="struct or timestamp or native"):
        MappingOptions(well_known_types="raw")  # type: ignore[arg-type]
    with pytest.raises(MappingOptionsError, match="long or decimal"):
        MappingOptions(uint64="int")  # type: ignore[arg-type]


def test_options_written_before_there_were_these() -> None:
    old = {"max_depth": 24, "max_columns": 2_000, "expand_cuts": False, "keep_removed": True}
    assert MappingOptions().to_json() == old, "or all fingerprints would change"
    assert MappingOptions.from_json(old) == MappingOptions()
    assert MappingOptions.from_json(OPTIONS.to_json()) == OPTIONS
    mapping = native("google.protobuf.Timestamp t = 1; google.protobuf.Struct s = 2;")
    assert mapping_from_json(mapping.to_json()) == mapping


def test_the_same_schema_under_other_options_is_another_version() -> None:
    source = compile_text(
        f"{HEAD} message M {{ google.protobuf.Timestamp t = 1; google.protobuf.Struct s = 2; "
        "uint64 u = 3; int64 i = 4; }"
    )
    first = assign(LedgerState(), value=source)
    second = assign(first.state, value=source, options=OPTIONS)
    third = assign(second.state, value=source)
    changes = {change.column: (change.kind, change.before, change.after) for change in second.changes}
    ids = {column.name: column.field_id for column in second.row.value.ids.columns}
    before = {column.name: column.field_id for column in first.row.value.ids.columns if len(column.path) == 1}
    assert {name: kind for name, kind in changes.items() if kind[0] is ChangeKind.REPLACED} == {
        "val.t": (ChangeKind.REPLACED, "struct", "timestamptz"),
        "val.s": (ChangeKind.REPLACED, "struct", "string"),
        "val.u": (ChangeKind.REPLACED, "long", "decimal(20, 0)"),
    }
    assert ids["i"] == before["i"]
    assert not {ids[name] for name in "tsu"} & set(before.values())
    types = {field.name: str(field.field_type) for field in second.iceberg_schema.find_type("val").fields}
    assert types[f"u_deleted_{before['u']}"] == "long"
    assert types["t"] == "timestamptz"
    assert third.version == first.version, "seen before"
    assert third.row == first.row
