"""JSON text of Struct, Value and ListValue."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import MappingOptions, compile_mapping
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.protobuf_bytes import delimited

OPTIONS = MappingOptions(well_known_types="native")
TEXT = """
syntax = "proto3"; package t; import "google/protobuf/struct.proto";
message M { google.protobuf.Struct s = 1; google.protobuf.Value v = 2; google.protobuf.ListValue l = 3; }
"""
MAPPING = compile_mapping(descriptor_of(TEXT), options=OPTIONS)


def rows_of(*values: bytes) -> list[dict[str, Any]]:
    data = pa.array(values, pa.binary())
    rows = MAPPING.decode(data)
    rows.validate(full=True)
    assert MAPPING.encode(rows).equals(data)
    pylist: list[dict[str, Any]] = rows.to_pylist()
    return pylist


def columns_alone(*values: bytes) -> list[bytes]:
    rows = MAPPING.decode(pa.array(values, pa.binary()))
    children = [
        pa.nulls(len(rows), kind.type) if kind.name == "__raw__" else rows.field(index)
        for index, kind in enumerate(rows.type)
    ]
    back: list[bytes] = MAPPING.encode(pa.StructArray.from_arrays(children, fields=list(rows.type))).to_pylist()
    return back


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (struct_pb2.Value(null_value=0), "null"),
        (struct_pb2.Value(bool_value=False), "false"),
        (struct_pb2.Value(bool_value=True), "true"),
        (struct_pb2.Value(string_value=""), '""'),
        (struct_pb2.Value(string_value="h\u00e9\U0001f600\u2028"), '"h\u00e9\U0001f600\u2028"'),
        (struct_pb2.Value(string_value='"\\/\b\f\n\r\t\0\x1f\x7f'), '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
        (struct_pb2.Value(struct_value={}), "{}"),
        (struct_pb2.Value(list_value=[]), "[]"),
        (struct_pb2.Value(list_value=[1, [2, []], {"a": {"": None}}]), '[1,[2,[]],{"a":{"":null}}]'),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_values(value: struct_pb2.Value, text: str) -> None:
    (row,) = rows_of(delimited(2, value.SerializeToString()))
    assert (row["v"], row["__raw__"]) == (text, None)
    assert json.loads(text) == json_format.MessageToDict(value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0.0"),
        (1.0, "1"),
        (-12.5, "-12.5"),
        (0.1, "0.1"),
        (0.05, "0.05"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (123456789.123, "123456789.123"),
        (9007199254740991.0, "9007199254740991"),
        (1e20, "100000000000000000000"),
        (-123456789012345680000.0, "-123456789012345680000"),
        (1e21, "1e+21"),
        (9007199254740993.0, "9007199254740992"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (1 / 3, "0.3333333333333333"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_numbers(number: float, text: str) -> None:
    (row,) = rows_of(delimited(2, struct_pb2.Value(number_value=number).SerializeToString()))
    assert (row["v"], row["__raw__"]) == (text, None)
    assert struct.pack("<d", json.loads(text)) == struct.pack("<d", number)


def test_random_doubles_come_back_from_the_fewest_digits() -> None:
    chosen = random.Random(5)
    doubles = [struct.unpack("<d", chosen.randbytes(8))[0] for _ in range(3_000)]
    doubles += [chosen.randint(-(10**9), 10**9) / 10 ** chosen.randint(0, 9) for _ in range(3_000)]
    doubles += [chosen.random() * 10 ** chosen.randint(-5, 20) for _ in range(3_000)]
    doubles = [double for double in doubles if abs(double) < float("inf")]
    written = [delimited(2, b"\x11" + struct.pack("<d", double)) for double in doubles]
    rows = rows_of(*written)
    assert columns_alone(*written) == written
    for number, row in zip(doubles, rows, strict=True):
        assert row["__raw__"] is None
        assert significant(row["v"]) == significant(repr(number)), number


def significant(text: str) -> str:
    return text.partition("e")[0].lstrip("-").replace(".", "").strip("0")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "null"),
        (b"\x08\x05", "null"),
        (b"\x11" + struct.pack("<d", float("nan")), '"NaN"'),
        (b"\x11" + struct.pack("<d", float("inf")), '"Infinity"'),
        (b"\x11" + struct.pack("<d", float("-inf")), '"-Infinity"'),
        (b"\x20\x02", "true"),
        (b"\x20\x81\x00", "true"),
        (b"\x08\x00\x20\x01", "true"),
        (b"\x1a\x01x\x1a\x01y", '"y"'),
        (b"\x2a\x07\x0a\x05\x0a\x01a\x12\x00", '{"a":null}'),
        (b"\x2a\x08\x0a\x06\x12\x02\x08\x00\x0a\x00", '{"":null}'),
        (b"\x2a\x06\x0a\x04\x12\x02\x08\x00", '{"":null}'),
        (b"\x32\x04\x0a\x02\x20\x01\x32\x04\x0a\x02\x08\x00", "[true,null]"),
        (b"\x32\x04\x0a\x02\x20\x01\x08\x00\x32\x04\x0a\x02\x08\x00", "[null]"),
        (b"\x20\x01\xa0\x06\x01", "true"),
        (b"\x2a\x0a\x0a\x08\x0a\x00\x12\x02\x08\x00\x18\x01", "{}"),
    ],
)
def test_what_columns_cannot_give_back(content: bytes, text: str) -> None:
    value = delimited(2, content)
    (row,) = rows_of(value)
    assert (row["v"], row["__raw__"]) == (text, value)
    assert columns_alone(value) != [value]


def test_of_a_key_given_twice_the_last_counts() -> None:
    entries = [
        delimited(1, delimited(1, key) + delimited(2, b"\x20\x01" if last else b"\x08\x00"))
        for key, last in ((b"a", False), (b"b", True), (b"a", True))
    ]
    many = [delimited(1, delimited(1, b"%d" % value) + b"\x12\x02\x08\x00") for value in range(500)]
    few, lots, fine = rows_of(
        delimited(1, b"".join(entries)), delimited(1, b"".join([*many, many[7]])), delimited(1, b"".join(many))
    )
    assert (few["s"], few["__raw__"] is not None) == ('{"b":true,"a":true}', True)
    assert len(json.loads(lots["s"])) == 500
    assert lots["__raw__"] is not None
    assert fine["__raw__"] is None


def test_messages_in_two_parts_are_merged() -> None:
    parts = (
        struct_pb2.Struct(fields={"a": struct_pb2.Value(bool_value=True)}),
        struct_pb2.Struct(fields={"b": struct_pb2.Value(list_value=[1])}),
    )
    value = b"".join(delimited(1, part.SerializeToString()) for part in parts)
    (row,) = rows_of(value)
    assert (row["s"], row["__raw__"]) == ('{"a":true,"b":[1]}', value)


@pytest.mark.parametrize("levels", [10, 47, 48, 49, 50, 51, 99, 100, 101, 300])
def test_as_deep_as_upb_goes_and_no_deeper(levels: int) -> None:
    content = b"\x08\x00"
    for _ in range(levels):
        content = delimited(6, delimited(1, content))
    value = delimited(2, content)
    (row,) = rows_of(value)
    deep = upb_takes(value)
    assert (row["__err__"] is None) == deep
    if deep:
        assert row["v"] == "[" * levels + "null" + "]" * levels
        assert columns_alone(value) == [value]


def upb_takes(value: bytes) -> bool:
    try:
        GetMessageClass(descriptor_of(TEXT)).FromString(value)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a\x06\x0a\x01\xff\x12\x01\x08",
        b"\x0a\x07\x0a\x01\xff\x12\x02\x08\x00",
        b"\x0a\x07\x0a\x01a\x12\x02\x1a\x05",
        b"\x0a\x07\x0a\x01a\x12\x02\x11\x00",
        b"\x0a\x09\x0a\x01a\x12\x04\x1a\x02\xc3\x28",
    ],
)
def test_what_upb_refuses(content: bytes) -> None:
    value = delimited(1, content)
    assert not upb_takes(value)
    (row,) = rows_of(value)
    assert row["__err__"] is not None
    assert row["s"] is None


def test_texts_of_other_writers() -> None:
    texts = {
        ' { "a" : [ 1 , 2.50 , -3E+2 ] ,\n"b":{ } } ': {"a": [1, 2.5, -300], "b": {}},
        '{"\\u00e9\\ud83d\\ude00\\/":"\\u0000"}': {"\u00e9\U0001f600/": "\0"},
        '{"a":0.1e1,"b":12345678901234567890123,"c":1e-400}': {"a": 1, "b": 12345678901234567890123.0, "c": 0},
    }
    rows = MAPPING.decode(pa.array([b""] * len(texts)))
    children = [
        pa.array(list(texts)) if kind.name == "s" else rows.field(index) for index, kind in enumerate(rows.type)
    ]
    encoded = MAPPING.encode(pa.StructArray.from_arrays(children, fields=list(rows.type))).to_pylist()
    for value, expected in zip(encoded, texts.values(), strict=True):
        (row,) = rows_of(value)
        assert json.loads(row["s"]) == expected
