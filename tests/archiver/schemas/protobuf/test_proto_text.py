"""Edits of .proto texts."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from archiver.schemas.protobuf.proto_text import ProtoText
from tests.support.schemas.proto_text import compile_text

HEAD = """syntax = "proto2"; package t; import "google/protobuf/descriptor.proto";
message X { optional string s = 1; repeated int32 l = 2; optional X x = 3; }
extend google.protobuf.FieldOptions { optional X fx = 50001; optional int32 fi = 50002; }
extend google.protobuf.MessageOptions { optional X mx = 50001; }
extend google.protobuf.EnumValueOptions { optional int32 vi = 50001; }
"""
BODY = """message M {
  option (mx).s = "a;b}"; // option (mx) = 3;
  option %s(mx).x = { s: 'it''s [1, 2], }', l: [1, 2], x < l: 3 > };
\toptional int32 a = 1 [deprecated = true, (fx).s = "x, y]", %s default = 7, (fi) = 3];
  repeated int32 b = 2 [(fi) = 1, /* , */ packed = true];
  optional string option = 3 [(t.fx) = { s: "," }];
  oneof o { int32 c = 4 [(fi) = 2
    , json_name = "cc"]; }
  extensions 100 to 200;
  enum E { E0 = 0 [(vi) = 1, deprecated = true]; option allow_alias = true; E1 = 0 [(.t.vi) = -2]; }
}
"""


def descriptors(text: str) -> FileDescriptorSet:
    files = FileDescriptorSet.FromString(compile_text(text).descriptor_set)
    for file in files.file:
        file.ClearField("source_code_info")
    return files


def test_options_are_read_with_their_names() -> None:
    parsed = ProtoText((HEAD + BODY % ("", "")).encode())
    names = [option.name for option in parsed.options]
    assert names == ["mx", "mx", "", "fx", "", "fi", "fi", "", "t.fx", "fi", "", "vi", "", "", ".t.vi"]
    assert [line.path for line in parsed.imports] == ["google/protobuf/descriptor.proto"]
    assert not any(option.has_list for option in parsed.options)


def test_custom_options_go_and_own_options_stay() -> None:
    text = HEAD + BODY % ("", "")
    parsed = ProtoText(text.encode())
    less = parsed.without([option for option in parsed.options if option.can_go]).decode()
    assert [len(line) for line in less.split("\n")] == [len(line) for line in text.split("\n")]
    file = next(file for file in descriptors(less).file if file.name == "test.proto")
    message = file.message_type[-1]
    a, b, _, c = message.field
    assert (a.default_value, a.options.deprecated, b.options.packed, c.json_name) == ("7", True, True, "cc")
    assert (message.enum_type[0].options.allow_alias, message.enum_type[0].value[0].options.deprecated) == (True, True)
    assert not message.HasField("options")
    assert "(fi)" not in less


@given(st.sets(st.integers(0, 14)))
def test_any_options_may_go(indexes: set[int]) -> None:
    parsed = ProtoText((HEAD + BODY % ("", "")).encode())
    gone = [parsed.options[index] for index in indexes]
    less = ProtoText(parsed.without(gone))
    assert [option.name for option in less.options] == [
        o.name for n, o in enumerate(parsed.options) if n not in indexes
    ]
    assert [(option.start, option.end) for option in less.options] == [
        (o.start, o.end) for n, o in enumerate(parsed.options) if n not in indexes
    ]


def test_no_option_goes_that_the_archiver_reads() -> None:
    parsed = ProtoText(b'message M { int32 a = 1 [(archiver.column).name = "b", (.archiver.column).exclude = true]; }')
    assert [option.can_go for option in parsed.options] == [False, False]


def test_places_are_counted_as_protoc_counts_them() -> None:
    parsed = ProtoText("a\n\tb\té c".encode())
    assert [parsed.offset(1, 1), parsed.offset(2, 9), parsed.offset(2, 17), parsed.offset(2, 20)] == [0, 3, 5, 8]
    assert parsed.text[8:9] == b"c"


@pytest.mark.parametrize(
    "text", ["", "option", "option (", "message M { int32 a = 1 [", '[(a) = "', "{", "}", "import", "option (a = 3;]["]
)
def test_broken_texts_are_left_as_they_are(text: str) -> None:
    parsed = ProtoText(text.encode())
    assert parsed.without([]) == text.encode()


@given(st.binary(max_size=200))
def test_any_bytes_can_be_looked_at(text: bytes) -> None:
    parsed = ProtoText(text)
    assert len(parsed.without(parsed.options)) == len(text)
