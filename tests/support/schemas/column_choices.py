"""Random exclusions and extensions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from schema_mapping.protobuf.column_options import COLUMN_NUMBER
from tests.support.schemas.protobuf_bytes import delimited
from tests.support.schemas.random_choices import Choices, chance
from tests.support.schemas.random_schemas import pool_of

F = FieldDescriptorProto
EXCLUDE = b"\x10\x01"
MOST = (1 << 29) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluding:
    whole: Descriptor
    marked: Descriptor
    rest: Descriptor


def excluding(choices: Choices, whole: Descriptor, *, displaced: bool) -> Excluding:
    """`displaced`: also fields that upb may move to the end."""
    marked, rest = _file_of(whole), _file_of(whole)
    for message, left in zip(marked.message_type, rest.message_type, strict=True):
        members = Counter(field.oneof_index for field in message.field if field.HasField("oneof_index"))
        for field, same in zip(message.field, tuple(left.field), strict=True):
            # A oneof needs a member.
            lonely = field.HasField("oneof_index") and members[field.oneof_index] < 2
            # An entry with more than key and value, a number that a closed enum hasn't.
            moves = field.type == F.TYPE_ENUM or _is_map(message, field)
            if lonely or (moves and not displaced) or not chance(choices, 35):
                continue
            if field.HasField("oneof_index"):
                members[field.oneof_index] -= 1
            field.options.MergeFromString(delimited(COLUMN_NUMBER, EXCLUDE))
            left.field.remove(same)
    return Excluding(whole=whole, marked=_message(marked), rest=_message(rest))


def with_extensions(choices: Choices, plain: Descriptor) -> tuple[Descriptor, tuple[str, ...]]:
    file = _file_of(plain)
    names = []
    for message in file.message_type:
        for field in tuple(message.field):
            if _may_be_extension(message, field, file.syntax) and chance(choices, 35):
                message.field.remove(field)
                message.extension_range.add(start=field.number, end=field.number + 1)
                extension = file.extension.add()
                extension.CopyFrom(field)
                extension.name = f"{message.name.lower()}_{field.name}"
                extension.extendee = f".t.{message.name}"
                names.append(f"t.{extension.name}")
    return _message(file), tuple(names)


def _may_be_extension(message: DescriptorProto, field: FieldDescriptorProto, syntax: str) -> bool:
    implicit = field.options.features.field_presence != 0
    return (
        syntax != "proto3"
        and field.label != F.LABEL_REQUIRED
        and not field.HasField("oneof_index")
        and not _is_map(message, field)
        and not implicit
        and field.number != MOST
    )


def _is_map(message: DescriptorProto, field: FieldDescriptorProto) -> bool:
    return any(field.type_name.endswith(f".{entry.name}") for entry in message.nested_type)


def _file_of(descriptor: Descriptor) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(descriptor.file.serialized_pb)


def _message(file: FileDescriptorProto) -> Descriptor:
    return pool_of(file).FindMessageTypeByName("t.M")
