"""Messages as canonical JSON, or the reason for none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from schema_mapping import LedgerState, UnionSchema, assign, compile_mapping
from schema_mapping.formats import mapping_from_json
from schema_mapping.value_format import NOT_ONE, ShowsValues
from tests.support.schemas.proto_text import compile_text, descriptor_of
from tests.support.schemas.random_messages import random_message
from tests.support.schemas.real_schemas import PACKAGES, messages

EVERYTHING = """
syntax = "proto3"; package t;
import "google/protobuf/any.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum Colour { NONE = 0; RED = 1; }
message Part { int32 some_number = 1; }
message M {
  int64 big_number = 1; uint64 huge = 2; double d = 3; float f = 4; bytes raw = 5; string text = 6; bool yes = 7;
  Colour colour = 8; repeated int32 many = 9; map<int32, string> named = 10; Part part = 11;
  optional int32 zero = 12; int32 unset = 13; oneof one { string a = 14; int64 b = 15; }
  google.protobuf.Timestamp at = 16; google.protobuf.Duration took = 17; google.protobuf.Struct free = 18;
  google.protobuf.Value null_value = 19; google.protobuf.Int64Value wrapped = 20; google.protobuf.FieldMask mask = 21;
  google.protobuf.Any any = 22; google.protobuf.Empty nothing = 23; repeated double odd = 24;
  string renamed = 25 [json_name = "called"];
}
"""


def shown(text: str, values: list[bytes | None], message: str = "t.M") -> list[dict[str, Any] | None]:
    mapping = compile_mapping(descriptor_of(text, message))
    assert isinstance(mapping, ShowsValues)
    column = pa.array(values, pa.binary())
    pylist: list[dict[str, Any] | None] = mapping.shown(column, mapping.decode(column)).to_pylist()
    return pylist


def message_of(text: str, name: str = "t.M") -> Any:
    return GetMessageClass(descriptor_of(text, name))()


def test_the_canonical_form_of_everything() -> None:
    message = message_of(EVERYTHING)
    json_form = {
        "bigNumber": "-9223372036854775808",
        "huge": "18446744073709551615",
        "d": "NaN",
        "f": "-Infinity",
        "raw": "AP8=",
        "text": "naïve ☃",
        "yes": True,
        "colour": 7,
        "many": [1, 2],
        "named": {"-1": "minus"},
        "part": {"someNumber": 1},
        "zero": 0,
        "b": "0",
        "at": "2026-01-31T00:00:00.000000001Z",
        "took": "-1.500s",
        "free": {"x": [None, 1.0, {"y": "z"}]},
        "nullValue": None,
        "wrapped": "5",
        "mask": "aB.c,d",
        "any": {"@type": "type.googleapis.com/t.Part", "someNumber": 9},
        "nothing": {},
        "odd": [0.1, "Infinity"],
        "called": "here",
    }
    json_format.ParseDict(json_form, message, descriptor_pool=message.DESCRIPTOR.file.pool)
    (result,) = shown(EVERYTHING, [message.SerializeToString()])
    assert result is not None
    assert (result["type"], result["reason"]) == ("t.M", None)
    assert json.loads(result["json"]) == json_form


def test_null_and_empty_are_told_apart() -> None:
    assert shown(EVERYTHING, [None, b""]) == [None, {"type": "t.M", "json": "{}", "reason": None}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x0a", "not decoded: truncated"),
        (b"\xff" * 20, "not decoded: "),
        (b"\xb2\x01\x07\x0a\x05t.Any", "no JSON form: "),
        (b"\x82\x01\x0b\x08" + b"\x80" * 9 + b"\x01", "no JSON form: "),
        (b"\x9a\x01\x09\x11\x00\x00\x00\x00\x00\x00\xf8\x7f", "no JSON form: "),
    ],
    ids=["cut off", "garbage", "unknown Any", "Timestamp before year 1", "NaN as a Value"],
)
def test_what_has_no_form_keeps_its_bytes_with_the_reason(value: bytes, reason: str) -> None:
    (result,) = shown(EVERYTHING, [value])
    assert result is not None
    assert (result["type"], result["json"]) == (None, None)
    assert result["reason"].startswith(reason)


def test_bytes_that_are_kept_raw_but_decode_are_shown() -> None:
    # a field twice, out of order, and an unknown one: the last wins, as the library says
    assert shown("message M { int32 a = 1; int32 b = 2; }", [b"\x10\x02\x08\x01\x08\x07\x38\x01"]) == [
        {"type": "t.M", "json": '{"a":7,"b":2}', "reason": None}
    ]


def test_an_envelope_is_left_out() -> None:
    mapping = compile_mapping(descriptor_of('syntax = "proto3"; package t; message M { int32 a = 1; }'))
    column = pa.array([b"\0\0\0\0\x07\0\x08\x05"], pa.binary())
    rows = mapping.decode(column, prefix_lengths=np.array([6], np.int32))
    assert mapping.shown(column, rows).to_pylist() == [{"type": "t.M", "json": '{"a":5}', "reason": None}]


def test_each_of_several_messages_is_shown_by_its_own_type() -> None:
    members = tuple(
        compile_text("message M { int32 a = 1; } message N { string b = 1; }", f"t.{name}") for name in "MN"
    )
    mapping = assign(LedgerState(), value=UnionSchema(members=members)).row.value
    assert isinstance(mapping, ShowsValues)
    column = pa.array([b"\x08\x05", b"\x0a\x01x", None, b"\x0a", b"\x08\x05"], pa.binary())
    rows = mapping.decode(column, which=np.array([0, 1, 1, 1, NOT_ONE], np.int16))
    assert mapping.shown(column, rows).to_pylist()[:4] == [
        {"type": "t.M", "json": '{"a":5}', "reason": None},
        {"type": "t.N", "json": '{"b":"x"}', "reason": None},
        None,
        {"type": None, "json": None, "reason": "not decoded: truncated@1"},
    ]


@given(st.integers(0, 1 << 32), st.sampled_from(PACKAGES), st.integers(0, 1 << 16))
def test_real_messages_are_shown_as_the_library_writes_them(seed: int, package: str, number: int) -> None:
    existing = messages(package)
    descriptor = existing[sorted(existing)[number % len(existing)]]
    message = random_message(seed, descriptor)
    data = message.SerializePartialToString()
    mapping = mapping_from_json(compile_mapping(descriptor).to_json())
    assert isinstance(mapping, ShowsValues)
    column = pa.array([data], pa.binary())
    (result,) = mapping.shown(column, mapping.decode(column)).to_pylist()
    try:
        expected = json_format.MessageToDict(type(message).FromString(data), descriptor_pool=descriptor.file.pool)
    except (json_format.Error, TypeError, ValueError):
        assert result["reason"].startswith("no JSON form")
        return
    assert json.loads(result["json"]) == expected
