"""Well-known types as one column each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import LedgerState, MappingOptions, assign, compile_mapping
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.errors import KernelError, MappingOptionsError
from schema_mapping.formats import mapping_from_json
from schema_mapping.protobuf.descriptors import find_descriptor
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import compile_text, descriptor_of
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

OPTIONS = MappingOptions(well_known_types="native", uint64="decimal")
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


def native(body: str) -> MessageMapping:
    return compile_mapping(message(body), options=OPTIONS)


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
    single, many = decoded(native(body), made(t=parts), made(ts=[parts, {}]))
    assert single["t"] == column
    assert many["ts"] == [column or (LAST if seconds > 0 else FIRST), EPOCH], "a list has no nulls"
    assert [single["__raw__"] is None, many["__raw__"] is None] == [exact, exact]


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
    single, many = decoded(native(body), made(d=parts), made(by={5: parts}))
    assert (single["d"], many["by"]) == (column, [(5, column)])
    assert [single["__raw__"] is None, many["__raw__"] is None] == [exact, exact]


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
    through_parquet(mapping, data, tmp_path)


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
