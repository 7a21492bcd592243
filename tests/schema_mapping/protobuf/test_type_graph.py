"""Facts of fields, compared with protobuf's."""

from __future__ import annotations

import pytest

from schema_mapping.protobuf.field_kinds import Cardinality, WireKind
from schema_mapping.protobuf.type_graph import FieldType, type_graph
from tests.support.schemas.proto_text import compile_text, descriptor_of

EDITION = """edition = "2023"; package t;
enum Open { A = 0; B = 1; }
enum Closed { option features.enum_type = CLOSED; X = 1; Y = 2; }
message M {
  int32 plain = 1;
  int32 implicit = 2 [features.field_presence = IMPLICIT];
  int32 required = 3 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 packed = 4;
  repeated int32 expanded = 5 [features.repeated_field_encoding = EXPANDED];
  string unchecked = 6 [features.utf8_validation = NONE];
  string checked = 7;
  N delimited = 8 [features.message_encoding = DELIMITED];
  repeated N many = 9 [features.message_encoding = DELIMITED];
  map<string, N> messages = 10;
  map<string, string> unchecked_map = 11 [features.utf8_validation = NONE];
  Open open = 12;
  Closed closed = 13;
  repeated string texts = 14;
  oneof choice { int32 left = 15; string right = 16; }
}
message N { }
"""

PROTO2 = """syntax = "proto2"; package t;
enum E { option allow_alias = true; Q = 0; W = 0; Z = -1; }
message M {
  optional int32 plain = 1;
  required string required = 2;
  optional group Group = 3 { optional int32 inner = 1; }
  repeated int32 expanded = 4;
  repeated int32 packed = 5 [packed = true];
  optional E closed = 6;
  map<int32, E> enums = 7;
  extensions 100 to max;
}
message Set { option message_set_wire_format = true; extensions 4 to max; }
"""

PROTO3 = """syntax = "proto3"; package t;
message M {
  int32 implicit = 1;
  optional int32 explicit = 2;
  oneof choice { int32 left = 3; string right = 4; }
  oneof single { int32 alone = 5; }
  repeated int32 packed = 6;
  repeated int32 expanded = 7 [packed = false];
  M self = 8;
}
"""


def facts(text: str) -> dict[str, FieldType]:
    graph = type_graph(descriptor_of(text))
    return {field.name: field for field in graph.types["t.M"].fields}


def test_editions_resolve_their_features() -> None:
    result = facts(EDITION)
    assert [name for name, field in result.items() if not field.explicit_presence] == [
        *("implicit", "packed", "expanded", "many", "messages", "unchecked_map", "texts")
    ]
    assert [name for name, field in result.items() if field.required] == ["required"]
    assert [name for name, field in result.items() if field.packed] == ["packed"]
    assert [name for name, field in result.items() if field.validate_utf8] == ["checked", "texts", "right"]
    assert result["delimited"].kind is result["many"].kind is WireKind.GROUP
    assert result["many"].cardinality is Cardinality.REPEATED
    assert {name: field.enum.closed for name, field in result.items() if field.enum} == {"open": False, "closed": True}
    assert {name: field.oneof for name, field in result.items() if field.oneof is not None} == {"left": 0, "right": 0}


def test_maps_are_described_by_key_and_value() -> None:
    result = facts(EDITION)
    checked, unchecked = result["messages"], result["unchecked_map"]
    assert checked.cardinality is Cardinality.MAP
    assert checked.key is not None
    assert checked.value is not None
    assert unchecked.key is not None
    assert unchecked.value is not None
    assert (checked.key.kind, checked.key.validate_utf8, checked.key.explicit_presence) == (
        WireKind.STRING,
        True,
        False,
    )
    assert (checked.value.message, checked.value.explicit_presence) == ("t.N", False)
    assert not unchecked.key.validate_utf8
    assert not unchecked.value.validate_utf8


def test_proto2_groups_aliases_and_closed_enums() -> None:
    result = facts(PROTO2)
    assert all(result[name].explicit_presence for name in ("plain", "required", "group", "closed"))
    assert result["required"].required
    assert not result["required"].validate_utf8
    assert (result["group"].kind, result["group"].message) == (WireKind.GROUP, "t.M.Group")
    assert (result["expanded"].packed, result["packed"].packed) == (False, True)
    assert result["closed"].enum is not None
    assert result["closed"].enum.closed
    assert result["closed"].enum.names == ((-1, "Z"), (0, "Q"))
    value = result["enums"].value
    assert value is not None
    assert value.enum == result["closed"].enum


def test_proto3_optional_is_no_oneof() -> None:
    result = facts(PROTO3)
    assert [name for name, field in result.items() if field.explicit_presence] == [
        *("explicit", "left", "right", "alone", "self")
    ]
    assert {name: field.oneof for name, field in result.items() if field.oneof is not None} == {
        "left": 0,
        "right": 0,
        "alone": 1,
    }
    assert (result["packed"].packed, result["expanded"].packed) == (True, False)


def test_message_set_is_marked() -> None:
    graph = type_graph(descriptor_of(PROTO2, "t.Set"))
    assert graph.types["t.Set"].message_set
    assert not graph.types["t.Set"].fields


def test_all_reached_types_and_no_others() -> None:
    text = """message M { map<string, A> a = 1; repeated B b = 2; }
              message A { C c = 1; } message B {} message C { M m = 1; } message D {}"""
    assert sorted(type_graph(descriptor_of(text)).types) == ["t.A", "t.B", "t.C", "t.M"]


@pytest.mark.parametrize(
    "same",
    [
        "message M { string b = 2; int32 a = 1; } message Unused {}",
        "// a comment\nmessage M { int32 a = 1; /* another */ string b = 2; }",
        "message M { int32 a = 1 [deprecated = true]; string b = 2; reserved 7; }",
    ],
)
def test_fingerprint_overlooks_what_no_byte_depends_on(same: str) -> None:
    plain = type_graph(descriptor_of("message M { int32 a = 1; string b = 2; }"))
    assert type_graph(descriptor_of(same)).fingerprint() == plain.fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        "message M { int32 a = 1; string c = 2; }",
        "message M { int32 a = 1; string b = 3; }",
        "message M { sint32 a = 1; string b = 2; }",
        "message M { optional int32 a = 1; string b = 2; }",
        "message M { repeated int32 a = 1; string b = 2; }",
        "message M { int32 a = 1; string b = 2; M m = 3; }",
    ],
)
def test_fingerprint_sees_what_bytes_or_columns_depend_on(other: str) -> None:
    plain = type_graph(descriptor_of("message M { int32 a = 1; string b = 2; }"))
    assert type_graph(descriptor_of(other)).fingerprint() != plain.fingerprint()


def test_fingerprint_is_fixed_for_ever() -> None:
    # Stored with every schema version: a change here would make every table start a new one.
    graph = type_graph(descriptor_of("message M { int32 a = 1; map<string, E> b = 2; } enum E { Z = 0; }"))
    assert graph.fingerprint() == "5791db7bd716d52b2766753a67a0309795ac34df9dd1a5f00aee07c0d1d09f4c"


def test_unused_files_do_not_matter() -> None:
    imports = {"other.proto": 'syntax = "proto3"; package o; message O { int32 x = 1; }'}
    used = compile_text('syntax = "proto3"; package t; import "other.proto"; message M { o.O o = 1; }', imports=imports)
    assert b"other.proto" in used.descriptor_set
