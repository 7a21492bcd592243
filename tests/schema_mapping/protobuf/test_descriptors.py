"""Descriptor sets, and errors in them."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import SourceSchema, closure, find_descriptor, missing_message
from tests.support.schemas.proto_text import compile_text

SHOP = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
message Order { google.protobuf.Timestamp at = 1; message Line { int32 n = 1; } map<string, Line> lines = 2; }
"""


def test_a_closure_finds_the_same_message() -> None:
    first = find_descriptor(compile_text(SHOP, "shop.Order"))
    again = find_descriptor(closure(first))
    before, after = DescriptorProto(), DescriptorProto()
    first.CopyToProto(before)
    again.CopyToProto(after)
    assert before == after
    assert closure(again) == closure(first)


def test_a_closure_leaves_comments_behind() -> None:
    source = compile_text("// a secret remark\nmessage M {}")
    assert b"secret remark" in source.descriptor_set
    assert b"secret remark" not in closure(find_descriptor(source)).descriptor_set


def test_files_may_come_in_any_order() -> None:
    files = FileDescriptorSet.FromString(compile_text(SHOP, "shop.Order").descriptor_set)
    shuffled = FileDescriptorSet(file=list(reversed(files.file)))
    source = SourceSchema(descriptor_set=shuffled.SerializeToString(), message="shop.Order")
    assert find_descriptor(source).full_name == "shop.Order"


def test_a_well_known_import_needs_not_be_in_the_set() -> None:
    files = FileDescriptorSet.FromString(compile_text(SHOP, "shop.Order").descriptor_set)
    alone = FileDescriptorSet(file=[file for file in files.file if not file.name.startswith("google/")])
    descriptor = find_descriptor(SourceSchema(descriptor_set=alone.SerializeToString(), message="shop.Order"))
    message = descriptor.fields_by_name["at"].message_type
    assert message is not None
    assert message.full_name == "google.protobuf.Timestamp"


def test_nested_messages_are_found() -> None:
    assert find_descriptor(compile_text(SHOP, "shop.Order.Line")).name == "Line"


def test_generated_descriptors_work() -> None:
    assert find_descriptor(closure(struct_pb2.Value.DESCRIPTOR)).full_name == "google.protobuf.Value"


def refusal(source: SourceSchema) -> str:
    with pytest.raises(DescriptorError) as caught:
        find_descriptor(source)
    return str(caught.value)


def test_a_missing_message_names_near_ones() -> None:
    assert "did you mean shop.Order?" in refusal(compile_text(SHOP, "Order"))
    assert "did you mean shop.Order" in refusal(compile_text(SHOP, "shop.order"))
    assert "shop.Order.Line" in refusal(compile_text(SHOP, "shop.Line"))
    assert "LinesEntry" not in refusal(compile_text(SHOP, "xyz"))


def test_a_far_name_lists_what_is_there() -> None:
    names = tuple(f"p.Q{n}" for n in range(9))
    events = missing_message("zzzzzz", names)
    assert events.endswith("which holds p.Q0, p.Q1, p.Q2, p.Q3, p.Q4 and 4 more")
    assert "no message at all" in missing_message("zzzzzz", ())


def test_no_descriptor_set() -> None:
    assert "no FileDescriptorSet" in refusal(SourceSchema(descriptor_set=b"\xff\xff", message="t.M"))
    assert "holds no file" in refusal(SourceSchema(descriptor_set=b"", message="t.M"))


M = DescriptorProto(name="M")


def file_set(*files: FileDescriptorProto) -> SourceSchema:
    return SourceSchema(descriptor_set=FileDescriptorSet(file=files).SerializeToString(), message="t.M")


def test_a_missing_import_is_named_with_its_importer() -> None:
    events = refusal(
        file_set(FileDescriptorProto(name="a.proto", package="t", message_type=[M], dependency=["b.proto"]))
    )
    assert "--include_imports" in events
    assert "file='b.proto'" in events
    assert "imported_by='a.proto'" in events


def test_a_circle_of_imports() -> None:
    events = refusal(
        file_set(
            FileDescriptorProto(name="a.proto", package="t", message_type=[M], dependency=["b.proto"]),
            FileDescriptorProto(name="b.proto", dependency=["a.proto"]),
        )
    )
    assert "circle" in events


def test_a_file_that_contradicts_itself() -> None:
    events = refusal(file_set(FileDescriptorProto(name="a.proto", package="t", message_type=[M, M])))
    assert "protobuf refuses" in events
    assert "file='a.proto'" in events


def test_files_that_the_message_does_not_need_may_be_broken() -> None:
    good = FileDescriptorProto(name="a.proto", package="t", message_type=[M])
    bad = FileDescriptorProto(name="b.proto", package="t", message_type=[M, M], dependency=["none.proto"])
    broken = FileDescriptorProto(name="b.proto", package="o", dependency=["none.proto"])
    assert find_descriptor(file_set(good, broken)).full_name == "t.M"
    assert "none.proto" in refusal(file_set(good, bad))
