"""Decoding by example."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import empty_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import MappingOptions, compile_mapping
from schema_mapping.errors import KernelError
from schema_mapping.protobuf.decode import decode, decode_parts
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.protobuf_bytes import delimited
from tests.support.schemas.upb_judge import parse

ORDER = """
message M {
  int32 count = 1; string name = 2; repeated int32 points = 3; map<string, N> parts = 4; M inner = 5;
  oneof which { string word = 6; N part = 7; } optional bool flag = 8; E kind = 9; double weight = 10;
  repeated N list = 11; bytes data = 12; uint64 large = 13;
}
message N { int64 id = 1; repeated string tags = 2; }
enum E { E_ZERO = 0; E_ONE = 1; }
"""
PROTO2 = """
syntax = "proto2"; package t;
message M { optional string text = 1; optional E kind = 2; repeated E kinds = 3 [packed = true]; optional int32 n = 4;
  map<int32, E> by = 5; optional group G = 6 { optional int32 x = 1; } extensions 100 to 200; }
enum E { A = 0; B = 7; }
"""


def order() -> tuple[Descriptor, MessageMapping]:
    descriptor = descriptor_of(ORDER)
    return descriptor, compile_mapping(descriptor)


def row_of(text: str, value: bytes) -> dict[str, object]:
    row: dict[str, object] = compile_mapping(descriptor_of(text)).decode(pa.array([value])).to_pylist()[0]
    return row


def test_columns_of_a_written_message() -> None:
    descriptor, mapping = order()
    kind = GetMessageClass(descriptor)
    message = kind(
        count=-5, name="n\u00e9", points=[1, 300], parts={"a": {"id": 1, "tags": ["x"]}}, part={"id": 2}, kind=1,
        list=[{}, {"id": 3}], data=b"\0", large=(1 << 64) - 1,
    )  # fmt: skip
    rows = mapping.decode(pa.array([message.SerializeToString(), b"", None], pa.binary()))
    rows.validate(full=True)
    assert rows.type.equals(mapping.arrow_type, check_metadata=True)
    first, empty, null = rows.to_pylist()
    part = {"id": 2, "tags": [], "__unrecognized__": None}
    assert first == {
        "count": -5, "name": "n\u00e9", "points": [1, 300],
        "parts": [("a", {"id": 1, "tags": ["x"], "__unrecognized__": None})], "inner": None, "word": None, "part": part,
        "flag": None, "kind": "E_ONE", "weight": 0.0, "list": [{**part, "id": 0}, {**part, "id": 3}], "data": b"\0",
        "large": -1, "__prefix__": None, "__raw__": None, "__err__": None, "__form__": None, "__unrecognized__": None,
    }  # fmt: skip
    assert (empty["count"], empty["points"], empty["kind"], empty["data"]) == (0, [], "E_ZERO", b"")
    assert null is None


@pytest.mark.parametrize(
    ("value", "err"),
    [
        (b"\x08", "truncated@1"),
        (b"\x08\x80", "truncated@1"),
        (b"\x12\x05abc", "truncated@1"),
        (b"\x52\x00\x51\x00", "truncated@3"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "bad_varint@1"),
        (b"\x00\x01", "bad_tag@0"),
        (b"\x80\x80\x80\x80\x80\x01", "bad_tag@0"),
        (b"\x12\xff\xff\xff\xff\x0f", "bad_length@1"),
        (b"\x0e", "bad_wire_type@0"),
        (b"\x08\x01\x0c", "bad_group@2"),
        (b"\xa3\x06\x08\x01", "bad_group@0"),
        (b"\x12\x01\xff", "bad_utf8@2"),
        (b"\x2a\x06\x2a\x04\x2a\x02\x12\x09", "truncated@7"),
        (b"\x22\x04\x0a\x02\xff\xfe", "bad_utf8@4"),
    ],
)
def test_refusals_name_code_and_offset(value: bytes, err: str) -> None:
    descriptor, mapping = order()
    assert parse(descriptor, value) is None
    good = b"\x08\x07\x1a\x02\x01\x02"
    rows = mapping.decode(pa.array([good, value, good])).to_pylist()
    assert rows[1] == dict.fromkeys(rows[0]) | {"__raw__": value, "__err__": err}
    assert rows[0] == rows[2] == mapping.decode(pa.array([good])).to_pylist()[0]


def test_a_refused_value_takes_its_lists_back() -> None:
    _, mapping = order()
    broken = b"\x1a\x02\x01\x02\x22\x08\x0a\x01a\x12\x03\x12\x01x\x5a\x03\x12\x01y\x12\x05a"
    good = b"\x1a\x01\x09\x5a\x03\x12\x01z"
    rows = mapping.decode(pa.array([broken, good, broken, good]))
    rows.validate(full=True)
    assert rows.field("points").to_pylist() == [None, [9], None, [9]]
    assert [row["list"][0]["tags"] for row in rows.take([1, 3]).to_pylist()] == [["z"], ["z"]]
    assert rows.field("parts").to_pylist() == [None, [], None, []]


@pytest.mark.parametrize(
    "value",
    [
        b"\x12\x01a\x08\x01",  # fields out of order
        b"\x08\x81\x00",  # a varint longer than it must be
        b"\x88\x00\x01",  # a tag longer than it must be
        b"\x12\x81\x00a",  # a length longer than it must be
        b"\x08\x00",  # a default written out
        b"\x08\x01\x08\x02",  # given twice
        b"\x18\x01",  # not packed
        b"\x1a\x01\x01\x1a\x01\x02",  # two runs
        b"\x1a\x00",  # an empty run
        b"\x22\x03\x0a\x01a",  # a map entry without a value
        b"\x22\x05\x12\x00\x0a\x01a",  # value before key
        b"\x22\x05\x0a\x01a\x12\x00\x22\x05\x0a\x01a\x12\x00",  # a key twice
        b"\x2a\x02\x08\x01\x2a\x02\x08\x02",  # a message twice
        b"\x32\x01a\x3a\x00",  # a oneof overwritten
        b"\x40\x02",  # a bool of two
        b"\x08\xff\xff\xff\xff\x0f",  # a negative int32 in five bytes
        b"\x51\x01\x00\x00\x00\x00\x00\xf0\x7f",  # a NaN of its own
        b"\xa0\x06\x01\x08\x01",  # an unknown field first
    ],
)
def test_what_columns_cannot_give_back_is_kept_raw(value: bytes) -> None:
    descriptor, mapping = order()
    assert parse(descriptor, value) is not None
    (row,) = mapping.decode(pa.array([value])).to_pylist()
    assert (row["__raw__"], row["__err__"]) == (value, None)


@pytest.mark.parametrize(
    "value",
    [
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x1a\x03\x01\xac\x02",
        b"\x22\x05\x0a\x01b\x12\x00\x22\x05\x0a\x01a\x12\x00",
        b"\x51\x00\x00\x00\x00\x00\x00\xf8\x7f",
        b"\x51\x00\x00\x00\x00\x00\x00\x00\x80",
        b"\x40\x00",
        b"\x32\x00",
        b"\x48\x63",
        b"\x08\x01\xa0\x06\x81\x00\x9b\x06\x9c\x06",
        b"\x08\x01\x15abcd",
    ],
)
def test_what_columns_give_back_is_not(value: bytes) -> None:
    _, mapping = order()
    rows = mapping.decode(pa.array([value]))
    assert rows.to_pylist()[0]["__raw__"] is None
    assert mapping.encode(rows).to_pylist() == [value]


def test_an_overwritten_oneof_leaves_nothing_behind() -> None:
    _, mapping = order()
    tags = b"\x12\x01x\x12\x01y"
    value = b"\x3a" + bytes([len(tags)]) + tags + b"\x32\x01w\x3a\x02\x08\x05"
    (row,) = mapping.decode(pa.array([value])).to_pylist()
    assert (row["word"], row["part"]) == (None, {"id": 5, "tags": [], "__unrecognized__": None})


def test_a_message_given_twice_is_merged() -> None:
    _, mapping = order()
    (row,) = mapping.decode(pa.array([b"\x3a\x05\x08\x01\x12\x01a\x3a\x03\x12\x01b"])).to_pylist()
    assert row["part"] == {"id": 1, "tags": ["a", "b"], "__unrecognized__": None}


def test_of_equal_keys_the_last_counts() -> None:
    _, mapping = order()
    entry = b"\x22\x07\x0a\x01%c\x12\x02\x08%c"
    value = b"".join(entry % (key, number) for key, number in ((b"a", 1), (b"b", 2), (b"a", 3)))
    plain = entry % (b"a", 9)
    rows = mapping.decode(pa.array([plain, value, plain]))
    rows.validate(full=True)
    keys = [[(key, part["id"]) for key, part in row["parts"]] for row in rows.to_pylist()]
    assert keys == [[("a", 9)], [("b", 2), ("a", 3)], [("a", 9)]]
    assert [raw is None for raw in rows.field("__raw__").to_pylist()] == [True, False, True]


def test_text_that_is_no_utf8_in_proto2() -> None:
    value = b"\x0a\x06a\xe2\x82b\xff\x80"
    row = row_of(PROTO2, value)
    assert (row["text"], row["__raw__"], row["__err__"]) == ("a\ufffdb\ufffd\ufffd", value, None)


def test_numbers_that_a_closed_enum_has_not() -> None:
    row = row_of(PROTO2, b"\x10\x07")
    assert (row["kind"], row["__unrecognized__"], row["__raw__"]) == ("B", None, None)
    row = row_of(PROTO2, b"\x20\x01\x10\x05")
    assert (row["kind"], row["__unrecognized__"], row["__raw__"]) == (None, b"\x10\x05", None)
    row = row_of(PROTO2, b"\x1a\x03\x07\x05\x00")
    assert (row["kinds"], row["__unrecognized__"], row["__raw__"] is None) == (["B", "A"], b"\x18\x05", False)
    row = row_of(PROTO2, b"\x2a\x04\x08\x01\x10\x05")
    assert (row["by"], row["__unrecognized__"], row["__raw__"]) == ([], b"\x2a\x04\x08\x01\x10\x05", None)


def test_extensions_and_groups() -> None:
    value = b"\x33\x08\x01\x34\xa2\x06\x01x"
    row = row_of(PROTO2, value)
    assert (row["g"], row["__unrecognized__"]) == ({"x": 1, "__unrecognized__": None}, b"\xa2\x06\x01x")
    assert row["__raw__"] is None


def test_depth_as_upb() -> None:
    descriptor, mapping = order()
    for depth in (99, 100, 101, 200):
        value = b""
        for _ in range(depth):
            size = len(value)
            value = b"\x2a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + value
        (row,) = mapping.decode(pa.array([value])).to_pylist()
        assert (row["__err__"] is None) == (parse(descriptor, value) is not None) == (depth <= 100)
        assert row["__err__"] is None or row["__err__"].startswith("too_deep@")


def test_what_is_cut_is_checked_by_its_own_type() -> None:
    descriptor, mapping = order()
    for inner in (b"\x12\x01\xff", b"\x2a\x03\x12\x01\xff", b"\x1a\x01\x80", b"\x22\x03\x0a\x01\xff", b"\x5a\x01\x08"):
        value = b"\x2a" + bytes([len(inner)]) + inner
        assert parse(descriptor, value) is None
        (row,) = mapping.decode(pa.array([value])).to_pylist()
        assert row["__err__"] is not None, inner


def test_slices_chunks_and_large_binary() -> None:
    _, mapping = order()
    values = [b"\x08\x01", None, b"\x08", b"\x12\x03abc", b""]
    whole = mapping.decode(pa.array(values, pa.binary())).to_pylist()
    assert mapping.decode(pa.array(values, pa.large_binary())).to_pylist() == whole
    assert mapping.decode(pa.array([b"zz", *values, b"q"], pa.binary()).slice(1, 5)).to_pylist() == whole
    chunks = pa.chunked_array([pa.array(values[:2], pa.binary()), pa.array(values[2:], pa.binary())])
    assert decode(chunks, mapping.program).to_pylist() == whole
    assert mapping.decode(pa.array([], pa.binary())).to_pylist() == []
    assert mapping.decode(pa.array([None, None], pa.binary())).to_pylist() == [None, None]


def test_more_rows_than_a_chunk_holds() -> None:
    _, mapping = order()
    values = [None if i % 7 == 3 else b"\x08\x01" * (i % 2) + b"\x1a\x02\x01\x02" * (i % 5) for i in range(20_000)]
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert [row and len(row["points"]) for row in rows.to_pylist()] == [
        None if value is None else 2 * (i % 5) for i, value in enumerate(values)
    ]


@pytest.mark.parametrize("first", [b"\xa0\x06\x01", b"\x3a\x03\xa0\x06\x01", b"\xa0\x06\x01\xff", b""])
def test_unknown_bytes_of_one_chunk_leave_others_alone(first: bytes) -> None:
    _, mapping = order()
    values = pa.array([first, b"\x08\x01", None, b"\xa0\x06\x02", b""], pa.binary())
    rows = decode(values, replace(mapping.program, chunk_rows=1))
    rows.validate(full=True)
    assert mapping.encode(rows).equals(values)
    assert rows.field("__unrecognized__").to_pylist()[1:] == [None, None, b"\xa0\x06\x02", None]


def test_prefixes() -> None:
    _, mapping = order()
    envelope = b"\0\0\0\0\x01\0"
    values = [envelope + b"\x08\x05", None, b"\x08\x05", envelope + b"\x08"]
    lengths = np.array([6, 0, 0, 6], dtype=np.int32)
    rows = mapping.decode(pa.array(values, pa.binary()), prefix_lengths=lengths)
    first, _, plain, broken = rows.to_pylist()
    assert (first["__prefix__"], first["count"], first["__raw__"]) == (envelope, 5, None)
    assert (plain["__prefix__"], plain["count"]) == (None, 5)
    assert (broken["__err__"], broken["__raw__"], broken["__prefix__"]) == ("truncated@7", values[3], None)
    assert mapping.encode(rows).to_pylist() == values
    with pytest.raises(KernelError, match="prefix is longer"):
        mapping.decode(pa.array(values, pa.binary()), prefix_lengths=np.array([6, 0, 3, 6], dtype=np.int32))


def test_keys_are_always_kept_raw() -> None:
    mapping = compile_mapping(descriptor_of(ORDER), keep_raw=True)
    rows = mapping.decode(pa.array([b"\x08\x01", b"", None, b"\x08"], pa.binary()))
    assert rows.field("__raw__").to_pylist() == [b"\x08\x01", b"", None, b"\x08"]
    assert rows.field("count").to_pylist() == [1, 0, None, None]


def test_wrong_input_is_named() -> None:
    _, mapping = order()
    with pytest.raises(KernelError, match="binary"):
        decode(pa.array(["text"]), mapping.program)


def test_threads_share_a_program() -> None:
    _, mapping = order()
    values = pa.array([b"\x08\x01\x12\x03abc\x1a\x02\x01\x02"] * 5_000)
    expected = mapping.decode(values)
    with ThreadPoolExecutor(4) as pool:
        assert all(rows.equals(expected) for rows in pool.map(lambda _: mapping.decode(values), range(16)))


def test_far_numbers_and_many_fields() -> None:
    numbers = [*range(1, 700), 5_000, 18_999, 20_000, (1 << 29) - 1]
    descriptor = descriptor_of("message M { " + " ".join(f"int32 f{n} = {n};" for n in numbers) + " }")
    mapping = compile_mapping(descriptor)
    message = GetMessageClass(descriptor)(**{f"f{number}": number for number in numbers})
    rows = mapping.decode(pa.array([message.SerializeToString(), b""]))
    assert rows.to_pylist()[0] | {} == {**{f"f{n}": n for n in numbers}, **_specials()}
    assert mapping.encode(rows).to_pylist() == [message.SerializeToString(), b""]


def _specials() -> dict[str, None]:
    return dict.fromkeys(("__prefix__", "__raw__", "__err__", "__form__", "__unrecognized__"))


def test_parts_are_one_where_they_fit() -> None:
    _, mapping = order()
    values = pa.array([b"\x08\x01"] * 3)
    (only,) = decode_parts(values, mapping.program)
    assert only.equals(mapping.decode(values))


ZEROS = """
syntax = "proto2"; package t;
message M { optional Empty e = 1; optional group G = 2 { } optional Open open = 3; map<int32, Empty> by = 4;
  optional M self = 5; repeated Empty list = 6; optional Set set = 7; optional int32 n = 8; }
message Empty { }
message Open { extensions 5; }
message Set { option message_set_wire_format = true; extensions 4 to max; }
"""
FIELDS_OF_NUMBER_ZERO = (
    "0005",
    "01" + "00" * 8,
    "020161",
    "0304",
    "03080104",
    "04",
    "0500000000",
    "800005",
    "00",
    "06",
)


def wrapped_zeros(zero: bytes) -> dict[str, bytes]:
    """Field number 0 wherever a message or a group can be."""
    return {
        "at the root": zero,
        "in a type without fields": delimited(1, zero),
        "in a group without fields": b"\x13" + zero + b"\x14",
        "in a type with room for extensions": delimited(3, zero),
        "in an entry": delimited(4, zero),
        "in an entry's value": delimited(4, b"\x08\x01" + delimited(2, zero)),
        "in a cut message": delimited(5, zero),
        "in a type without fields, cut": delimited(5, delimited(1, zero)),
        "in a group without fields, cut": delimited(5, b"\x13" + zero + b"\x14"),
        "in a list": delimited(6, zero),
        "in a message set": delimited(7, zero),
        "in a message set's item": delimited(7, b"\x0b\x10\x05" + zero + b"\x0c"),
        "in an unknown group": b"\x7b" + zero + b"\x7c",
        "in an unknown group of an unknown group": b"\x7b\x83\x01" + zero + b"\x84\x01\x7c",
        "in an unknown group, cut": delimited(5, b"\x7b" + zero + b"\x7c"),
    }


@pytest.mark.parametrize("depth", [24, 1])
@pytest.mark.parametrize("zero", FIELDS_OF_NUMBER_ZERO)
def test_field_number_zero_as_upb(zero: str, depth: int) -> None:
    descriptor = descriptor_of(ZEROS)
    mapping = compile_mapping(descriptor, options=MappingOptions(max_depth=depth))
    cases = wrapped_zeros(bytes.fromhex(zero))
    rows = mapping.decode(pa.array(cases.values()))
    refused = {case for case, err in zip(cases, rows.field("__err__").to_pylist(), strict=True) if err is not None}
    assert refused == {case for case, value in cases.items() if parse(descriptor, value) is None}
    assert mapping.encode(rows).to_pylist() == list(cases.values())


@pytest.mark.parametrize(("kind", "value"), [("BoolValue", b"\x13\x00\x05\x14"), ("Empty", b"\x00\x10")])
def test_field_number_zero_in_types_of_google(kind: str, value: bytes) -> None:
    file = empty_pb2.DESCRIPTOR if kind == "Empty" else wrappers_pb2.DESCRIPTOR
    descriptor = file.message_types_by_name[kind]
    assert parse(descriptor, value) is not None
    row = compile_mapping(descriptor).decode(pa.array([value])).to_pylist()[0]
    assert (row["__err__"], row["__raw__"], row["__unrecognized__"]) == (None, None, value)
