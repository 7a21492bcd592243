"""Editions of Protobuf."""

from __future__ import annotations

import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    EDITION_2024,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from schema_mapping import SourceSchema, compile_mapping
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import closure, find_descriptor
from schema_mapping.protobuf.field_kinds import WireKind
from schema_mapping.protobuf.type_graph import FieldType, type_graph
from tests.support.schemas.kernel_check import check_upb_is_canonical, check_values
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.protobuf_bytes import varint
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.random_payloads import random_payload

MORE = """edition = "2024"; package o; import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { string shown_as = 50001; }"""

OF_2024 = """edition = "2024"; package t;
import option "more.proto";
import option "archiver/options.proto";
option features.enforce_naming_style = STYLE_LEGACY;
option features.default_symbol_visibility = EXPORT_TOP_LEVEL;
export message M {
  int32 OddName = 1;
  string text = 2 [(o.shown_as) = "t", (archiver.column).name = "renamed"];
  N group_like = 3 [features.message_encoding = DELIMITED];
  repeated int64 expanded = 4 [features.repeated_field_encoding = EXPANDED];
  repeated int64 packed = 5;
  int32 implicit = 6 [features.field_presence = IMPLICIT];
  string unchecked = 7 [features.utf8_validation = NONE];
  map<string, Inside> by_name = 8;
  Closed closed = 9;
  Open open = 10;
  repeated N many = 11 [features.message_encoding = DELIMITED];
  bytes hidden = 12 [(archiver.column).exclude = true];
  oneof choice { int32 left = 13; Inside right = 14; }
  local message Inside { int32 x = 1; }
}
local message N { int32 required = 1 [features.field_presence = LEGACY_REQUIRED]; M m = 2; }
local enum Closed { option features.enum_type = CLOSED; CLOSED_A = 1; CLOSED_B = 5; }
enum Open { OPEN_ZERO = 0; OPEN_ONE = 1; }
"""

# What a whole file says, and what its fields and enums say otherwise.
OF_FILE = """edition = "2023"; package t;
option features.field_presence = IMPLICIT;
option features.repeated_field_encoding = EXPANDED;
option features.utf8_validation = NONE;
option features.message_encoding = DELIMITED;
option features.enum_type = CLOSED;
message M {
  int32 implicit = 1;
  int32 explicit = 2 [features.field_presence = EXPLICIT];
  repeated int32 expanded = 3;
  repeated int32 packed = 4 [features.repeated_field_encoding = PACKED];
  string unchecked = 5;
  string checked = 6 [features.utf8_validation = VERIFY];
  N delimited = 7;
  N prefixed = 8 [features.message_encoding = LENGTH_PREFIXED];
  map<string, N> never_delimited = 9;
  repeated Closed closed = 10;
  Open open = 11;
}
message N { string text = 1; }
enum Closed { A = 3; }
enum Open { option features.enum_type = OPEN; ZERO = 0; }
"""


def facts(descriptor: Descriptor) -> dict[str, FieldType]:
    return {field.name: field for field in type_graph(descriptor).types["t.M"].fields}


def judged_by_upb(descriptor: Descriptor) -> None:
    choices = SeededChoices(7)
    values = [random_payload(choices, descriptor) for _ in range(150)]
    check_values(descriptor, values)
    check_upb_is_canonical(descriptor, values)


def test_2024_by_protoc() -> None:
    source = compile_text(OF_2024, imports={"more.proto": MORE})
    descriptor = find_descriptor(source)
    result = facts(descriptor)
    assert "hidden" not in result
    assert (result["text"].column, result["group_like"].kind) == ("renamed", WireKind.GROUP)
    assert [name for name, field in result.items() if field.explicit_presence] == [
        *("OddName", "text", "group_like", "unchecked", "closed", "open", "left", "right")
    ]
    assert [name for name, field in result.items() if field.packed] == ["packed"]
    assert [name for name, field in result.items() if field.kind is WireKind.STRING and not field.validate_utf8] == [
        "unchecked"
    ]
    assert {name: field.enum.closed for name, field in result.items() if field.enum} == {"closed": True, "open": False}
    assert facts(find_descriptor(closure(descriptor))) == result


@pytest.mark.parametrize("text", [OF_2024.replace(", (archiver.column).exclude = true", ""), OF_FILE])
def test_rows_as_upb_has_them(text: str) -> None:
    text = text.replace("[(archiver.column).exclude = true]", "")
    judged_by_upb(find_descriptor(compile_text(text, imports={"more.proto": MORE})))


def test_a_file_speaks_for_its_fields() -> None:
    result = facts(find_descriptor(compile_text(OF_FILE)))
    assert [name for name, field in result.items() if field.explicit_presence] == ["explicit", "delimited", "prefixed"]
    assert [name for name, field in result.items() if field.packed] == ["packed"]
    assert {name: field.validate_utf8 for name, field in result.items() if field.kind is WireKind.STRING} == {
        "unchecked": False,
        "checked": True,
    }
    kinds = {name: result[name].kind for name in ("delimited", "prefixed", "never_delimited")}
    assert kinds == {
        "delimited": WireKind.GROUP,
        "prefixed": WireKind.MESSAGE,
        "never_delimited": WireKind.MESSAGE,
    }
    value = result["never_delimited"].value
    assert value is not None
    assert value.kind is WireKind.MESSAGE
    assert {name: field.enum.closed for name, field in result.items() if field.enum} == {"closed": True, "open": False}


@pytest.mark.parametrize("edition", [EDITION_2023, EDITION_2024])
def test_descriptors_made_by_hand(edition: int) -> None:
    file = by_hand(edition)
    file.options.features.field_presence = FeatureSet.IMPLICIT
    message = file.message_type[0]
    message.field[0].options.features.field_presence = FeatureSet.LEGACY_REQUIRED
    message.field.add(name="more", number=2, type=FieldDescriptorProto.TYPE_BYTES, label=1)
    descriptor = find_descriptor(source(file))
    result = facts(descriptor)
    assert [(field.required, field.explicit_presence) for field in result.values()] == [(True, True), (False, False)]
    value = message_factory.GetMessageClass(descriptor)(a=0, more=b"x").SerializeToString()
    check_values(descriptor, [value, b"", b"\x12\x00"])


@pytest.mark.parametrize("number", [1003, 30_000])
def test_an_edition_to_come_is_named(number: int) -> None:
    file = by_hand(EDITION_2024)
    file.ClearField("edition")
    file.MergeFromString(b"\x70" + varint(number))
    with pytest.raises(DescriptorError, match="doesn't know: upgrade `protobuf`") as caught:
        find_descriptor(source(file))
    assert (caught.value.context["file"], caught.value.context["edition"]) == ("t.proto", number)


def by_hand(edition: int) -> FileDescriptorProto:
    file = FileDescriptorProto(name="t.proto", package="t", syntax="editions")
    file.edition = edition  # type: ignore[assignment]
    file.message_type.add(name="M").field.add(name="a", number=1, type=FieldDescriptorProto.TYPE_INT32, label=1)
    return file


def source(file: FileDescriptorProto) -> SourceSchema:
    return SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="t.M")


def test_mapping_of_2024() -> None:
    mapping = compile_mapping(find_descriptor(compile_text(OF_2024, imports={"more.proto": MORE})))
    assert mapping.arrow_type.names[:3] == ["OddName", "renamed", "group_like"]
