"""Reads the field option `(archiver.column)` from bytes: neither process nor pool needs the extension."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from schema_mapping.errors import DescriptorError

OPTIONS_FILE: Final = "archiver/options.proto"
COLUMN_OPTION: Final = "archiver.column"
COLUMN_NUMBER: Final = 51894
COLUMN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    name: str | None = None
    exclude: bool = False


PLAIN: Final = ColumnOptions()


def column_options(field: FieldDescriptor) -> ColumnOptions:
    """Raises DescriptorError for a name that a column can't have."""
    option = _option_of(field) if field.has_options else None
    if option is None or _is_of_others(field):
        return PLAIN
    if option.name and not COLUMN_NAME.fullmatch(option.name):
        raise DescriptorError(
            "(archiver.column).name must be letters, digits and underscores, 128 at most, and not begin with a digit",
            field=field.full_name,
            name=option.name,
        )
    return ColumnOptions(name=option.name or None, exclude=option.exclude)


def _option_of(field: FieldDescriptor) -> Any:
    try:
        options = _reader().FromString(field.GetOptions().SerializeToString())
    except DecodeError:
        return None
    return options.column if options.HasField("column") else None


def _is_of_others(field: FieldDescriptor) -> bool:
    assert field.containing_type is not None
    pool = field.containing_type.file.pool
    try:
        options = pool.FindMessageTypeByName("google.protobuf.FieldOptions")
        declared = pool.FindExtensionByNumber(options, COLUMN_NUMBER)
    except KeyError:
        return False
    return declared.full_name != COLUMN_OPTION


def options_file() -> FileDescriptorProto:
    """For schemas that lack it."""
    file = _file(OPTIONS_FILE, "archiver")
    file.dependency.append(descriptor_pb2.DESCRIPTOR.name)
    _add_column(file)
    file.extension.add(
        name="column",
        number=COLUMN_NUMBER,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".archiver.Column",
        extendee=".google.protobuf.FieldOptions",
        json_name="column",
        proto3_optional=True,
    )
    return file


@cache
def _reader() -> Any:
    # A message that reads field options: the archiver's extension is its only field.
    file = _file("archiver/field_options.proto", "archiver.reader")
    _add_column(file)
    file.message_type.add(name="Options").field.add(
        name="column",
        number=COLUMN_NUMBER,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".archiver.reader.Column",
    )
    pool = DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("archiver.reader.Options"))


def _file(name: str, package: str) -> FileDescriptorProto:
    return FileDescriptorProto(name=name, package=package, syntax="proto3")


def _add_column(file: FileDescriptorProto) -> None:
    column = file.message_type.add(name="Column")
    for number, (name, kind) in enumerate(
        (("name", FieldDescriptorProto.TYPE_STRING), ("exclude", FieldDescriptorProto.TYPE_BOOL)), start=1
    ):
        column.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL, type=kind, json_name=name)
