"""Writes a file descriptor as .proto text, without options and defaults."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

F = FieldDescriptorProto
LABELS = {F.LABEL_REPEATED: "repeated ", F.LABEL_REQUIRED: "required ", F.LABEL_OPTIONAL: "optional "}


def with_imports(file: FileDescriptor) -> dict[str, str]:
    texts: dict[str, str] = {}
    pending = [file]
    while pending:
        dependency = pending.pop()
        if dependency.name not in texts:
            texts[dependency.name] = file_text(FileDescriptorProto.FromString(dependency.serialized_pb))
            pending.extend(dependency.dependencies)
    return texts


def file_text(file: FileDescriptorProto) -> str:
    syntax = file.syntax or "proto2"
    lines = [f'syntax = "{syntax}";', f"package {file.package};"]
    lines += [f'import "{name}";' for name in file.dependency]
    for enum in file.enum_type:
        lines += _enum(enum)
    for message in file.message_type:
        lines += _message(message, syntax)
    return "\n".join(lines)


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for value in enum.value:
        yield f"{value.name} = {value.number};"
    yield "}"


def _message(message: DescriptorProto, syntax: str) -> Iterator[str]:
    yield f"message {message.name} {{"
    for enum in message.enum_type:
        yield from _enum(enum)
    maps = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    for nested in message.nested_type:
        if nested.name not in maps:
            yield from _message(nested, syntax)
    for index, oneof in enumerate(message.oneof_decl):
        members = [field for field in message.field if field.HasField("oneof_index") and field.oneof_index == index]
        if not members[0].proto3_optional:
            yield f"oneof {oneof.name} {{"
            yield from (f"{_type(field)} {field.name} = {field.number};" for field in members)
            yield "}"
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield _field(field, maps, syntax)
    yield from (f"extensions {number.start} to {number.end - 1};" for number in message.extension_range)
    yield "}"


def _field(field: FieldDescriptorProto, maps: dict[str, DescriptorProto], syntax: str) -> str:
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        return f"map<{_type(entry.field[0])}, {_type(entry.field[1])}> {field.name} = {field.number};"
    plain = syntax == "proto3" and field.label == F.LABEL_OPTIONAL and not field.proto3_optional
    return f"{'' if plain else LABELS[field.label]}{_type(field)} {field.name} = {field.number};"


def _type(field: FieldDescriptorProto) -> str:
    return field.type_name or F.Type.Name(field.type).removeprefix("TYPE_").lower()
