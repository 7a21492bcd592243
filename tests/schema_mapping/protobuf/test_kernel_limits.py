"""Hostile values take linear time and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from schema_mapping import MappingOptions, compile_mapping
from schema_mapping.protobuf.decode import decode
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.engine.cpu_time import spent
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.protobuf_bytes import delimited, varint

TEXT = """
import "archiver/options.proto";
message M {
  repeated int32 packed = 1; repeated int32 loose = 2 [packed = false]; map<uint32, N> by = 3; repeated N list = 4;
  oneof o { N a = 5; N b = 6; } N one = 7; repeated string text = 8; map<string, int32> named = 9; M inner = 10;
  int32 aside = 11 [(archiver.column).exclude = true];
}
message N { int32 x = 1; repeated int32 y = 2; }
"""


def keys(count: int) -> bytes:
    return b"".join(delimited(3, b"\x08" + varint(i) + b"\x12\x00") for i in range(count))


def names(count: int) -> bytes:
    return b"".join(delimited(9, delimited(1, b"key%d" % i) + b"\x10\x01") for i in range(count))


def nested(depth: int) -> bytes:
    content = b"\x10\x01"
    for _ in range(depth):
        content = delimited(10, content)
    return content


SHAPES: dict[str, Callable[[int], bytes]] = {
    "one long packed run": lambda n: delimited(1, b"\x01" * n),
    "many short runs": lambda n: delimited(1, b"\x01") * n,
    "unpacked": lambda n: b"\x10\x01" * n,
    "keys": keys,
    "names": names,
    "one key again and again": lambda n: delimited(3, b"\x08\x05\x12\x02\x10\x01") * n,
    "messages": lambda n: delimited(4, b"\x10\x01") * n,
    "a message merged again and again": lambda n: delimited(7, b"\x10\x01") * n,
    "a oneof back and forth": lambda n: (delimited(5, b"\x10\x01") + delimited(6, b"\x10\x01")) * n,
    "unknown fields between known ones": lambda n: b"\xa0\x06\x01\x10\x01" * n,
    "many unknown fields": lambda n: b"\xa0\x06\x01" * n,
    "nested as deep as may be": lambda n: nested(99) * (n // 100),
    "elements of a long list": lambda n: delimited(4, b"\x08\x01\x12\x03\x01\x02\x03") * 2 * n,
    "a long text": lambda n: delimited(8, "\u20ac\u00e9a".encode() * 10 * n),
    "unknown fields in two messages": lambda n: (delimited(7, b"\xa0\x06\x01") + b"\xa0\x06\x01") * n,
    "excluded fields between known ones": lambda n: b"\x58\x01\x10\x01" * n,
    "excluded fields of many messages": lambda n: delimited(10, b"\x58\x01") * n,
    "groups": lambda n: b"\xa3\x06\xa4\x06" * n,
    "empty texts": lambda n: b"\x42\x00" * n,
    "maps in a merged message": lambda n: delimited(10, delimited(3, b"\x08\x05\x12\x00")) * n,
}


def mapping() -> MessageMapping:
    return compile_mapping(descriptor_of(TEXT))


def entries(count: int) -> bytes:
    return delimited(1, b"".join(delimited(1, delimited(1, b"key%d" % i) + b"\x12\x02\x20\x01") for i in range(count)))


def deep(count: int) -> bytes:
    content = b"\x08\x00"
    for _ in range(40):
        content = delimited(6, delimited(1, content))
    return b"".join(delimited(3, delimited(1, content)) for _ in range(count // 40))


WELL_KNOWN = """
syntax = "proto3"; package t; import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
message M {
  google.protobuf.Struct s = 1; google.protobuf.Value v = 2; repeated google.protobuf.ListValue l = 3;
  repeated google.protobuf.Timestamp t = 4; oneof o { google.protobuf.Value a = 5; google.protobuf.Timestamp b = 6; }
}
"""

WELL_KNOWN_SHAPES: dict[str, Callable[[int], bytes]] = {
    "entries of a struct": entries,
    "one key again and again": lambda n: delimited(1, delimited(1, b"\x0a\x01k\x12\x02\x20\x01") * n),
    "a struct merged again and again": lambda n: delimited(1, delimited(1, b"\x0a\x01k\x12\x02\x20\x01")) * n,
    "a value merged again and again": lambda n: delimited(2, delimited(6, b"\x0a\x00") * n),
    "kinds back and forth": lambda n: delimited(2, (delimited(5, b"") + delimited(6, b"\x0a\x00")) * n),
    "a long list": lambda n: delimited(2, delimited(6, b"\x0a\x02\x08\x00" * n)),
    "many lists": lambda n: delimited(3, b"\x0a\x02\x08\x00") * n,
    "texts to be escaped": lambda n: delimited(2, delimited(3, b"\x01" * n)),
    "numbers": lambda n: delimited(2, delimited(6, b"\x0a\x09\x11\x9a\x99\x99\x99\x99\x99\xb9\x3f" * n)),
    "deep lists": deep,
    "times that do not fit": lambda n: delimited(4, b"\x10\x01") * n,
    "a oneof back and forth": lambda n: (delimited(5, b"\x20\x01") + delimited(6, b"\x08\x01")) * n,
}


@pytest.mark.parametrize("shape", WELL_KNOWN_SHAPES.values(), ids=WELL_KNOWN_SHAPES)
def test_time_of_well_known_types_grows_with_size(shape: Callable[[int], bytes]) -> None:
    options = MappingOptions(well_known_types="native")
    check_growth(compile_mapping(descriptor_of(WELL_KNOWN), options=options), shape)


def test_entries_beyond_what_memory_should_hold_are_refused() -> None:
    kernel = compile_mapping(descriptor_of(WELL_KNOWN), options=MappingOptions(well_known_types="native"))
    hostile = entries(100_000)
    program = replace(kernel.program, value_memory=1 << 20)
    rows = decode(pa.array([hostile]), program)
    assert rows.field("__err__").to_pylist() == ["too_large@0"]
    assert rows.field("__raw__").to_pylist() == [hostile]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_time_grows_with_size(shape: Callable[[int], bytes]) -> None:
    check_growth(mapping(), shape)


def check_growth(kernel: MessageMapping, shape: Callable[[int], bytes]) -> None:
    small, large = pa.array([shape(5_000)]), pa.array([shape(50_000)])
    kernel.decode(small)
    assert spent(lambda: kernel.decode(large)) < 40 * spent(lambda: kernel.decode(small)) + 0.05
    rows, few = kernel.decode(large), kernel.decode(small)
    assert spent(lambda: kernel.encode(rows)) < 40 * spent(lambda: kernel.encode(few)) + 0.05
    rows.validate(full=True)
    assert rows.field("__err__").null_count == 1
    assert kernel.encode(rows).equals(large)


def test_a_million_keys() -> None:
    kernel = mapping()
    value = keys(1_000_000)
    rows = kernel.decode(pa.array([value]))
    assert rows.field("__raw__").null_count == 1
    assert len(rows.field("by").values) == 1_000_000
    again = kernel.decode(pa.array([value + delimited(3, b"\x08\x05\x12\x00")]))
    assert again.field("__raw__").null_count == 0
    assert len(again.field("by").values) == 1_000_000


def test_a_value_of_many_megabytes_among_small_ones() -> None:
    kernel = mapping()
    values = pa.array([b"\x10\x01", delimited(8, b"x" * (64 << 20)), b"\x10\x02", delimited(8, b"x" * (8 << 20))[:-1]])
    rows = kernel.decode(values)
    assert kernel.encode(rows).equals(values)
    assert [row is None for row in rows.field("__err__").to_pylist()] == [True, True, True, False]


def test_columns_beyond_what_memory_should_hold_are_refused() -> None:
    wide = " ".join(f"int32 f{number} = {number};" for number in range(1, 500))
    kernel = compile_mapping(descriptor_of(f"message M {{ repeated W w = 1; int32 x = 2; }} message W {{ {wide} }}"))
    hostile = b"\x0a\x00" * 1_000
    program = replace(kernel.program, value_memory=1 << 20)
    rows = decode(pa.array([b"\x10\x01", hostile, b"\x10\x02"]), program)
    assert rows.field("__err__").to_pylist()[1].startswith("too_large@")
    assert rows.field("__raw__").to_pylist() == [None, hostile, None]
    assert rows.field("x").to_pylist() == [1, None, 2]


def test_rows_that_are_taken_back_take_no_memory() -> None:
    wide = " ".join(f"int32 f{number} = {number};" for number in range(2, 500))
    lists = "message L { repeated W w = 1; } message W { repeated int32 f1 = 1; " + wide + " }"
    kernel = compile_mapping(descriptor_of("message M { oneof o { L a = 1; L b = 2; } int32 x = 3; } " + lists))
    program = replace(kernel.program, value_memory=1 << 16)
    value = (b"\x0a\x02\x0a\x00" + b"\x12\x04\x0a\x02\x08\x01") * 1_000
    rows = decode(pa.array([value]), program)
    assert rows.field("__err__").to_pylist() == [None]
    assert rows.field("b")[0].as_py()["w"][0]["f1"] == [1]
    assert kernel.encode(rows).to_pylist() == [value]
