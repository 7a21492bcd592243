"""JSON names of fields. Clashing fields are shown under their own names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool


def add_file(pool: DescriptorPool, file: FileDescriptorProto) -> None:
    """Clashing JSON names are permitted: old schemas have `fooBar` beside `foo_bar`.

    Raises TypeError if protobuf refuses the file.
    """
    try:
        pool.Add(file)
    except TypeError:
        allowing = FileDescriptorProto.FromString(file.SerializeToString())
        clashing = [message for message in _messages(allowing.message_type) if clashing_names(message)]
        if not clashing:
            raise
        for message in clashing:
            message.options.deprecated_legacy_json_field_conflicts = True
        pool.Add(allowing)


def with_own_names(file: FileDescriptorProto) -> FileDescriptorProto:
    result = FileDescriptorProto.FromString(file.SerializeToString())
    for message in _messages(result.message_type):
        while names := clashing_names(message):
            for field in message.field:
                if json_name(field) in names:
                    field.json_name = field.name
    return result


def clashing_names(message: DescriptorProto) -> set[str]:
    return {name for name, count in Counter(map(json_name, message.field)).items() if count > 1}


def json_name(field: FieldDescriptorProto) -> str:
    """By default as protoc derives it."""
    if field.HasField("json_name"):
        return field.json_name
    first, *rest = field.name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _messages(declared: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    pending: list[Any] = list(declared)
    while pending:
        message = pending.pop()
        yield message
        pending += message.nested_type
