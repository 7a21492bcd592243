"""A .proto's comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, SourceCodeInfo

from schema_mapping.columns.docs import Comments, one_line
from schema_mapping.columns.paths import Step
from schema_mapping.protobuf.descriptors import SourceSchema, parse_descriptor_set

Locations: TypeAlias = Mapping[tuple[int, ...], SourceCodeInfo.Location]

MESSAGE_STEP: Final = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
NESTED_STEP: Final = DescriptorProto.NESTED_TYPE_FIELD_NUMBER
FIELD_STEP: Final = DescriptorProto.FIELD_FIELD_NUMBER
EXTENSION_STEP: Final = DescriptorProto.EXTENSION_FIELD_NUMBER
FILE_EXTENSION_STEP: Final = FileDescriptorProto.EXTENSION_FIELD_NUMBER


def read_comments(source: SourceSchema) -> Comments:
    """By message and field number; a comment above wins. Empty without source info."""
    comments: dict[tuple[str, Step], str] = {}
    for file in parse_descriptor_set(source.descriptor_set).file:
        locations = {tuple(location.path): location for location in file.source_code_info.location if _text(location)}
        if locations:
            scope = f"{file.package}." if file.package else ""
            comments.update(_of_messages(scope, file.message_type, (MESSAGE_STEP,), locations))
            comments.update(_of_extensions(file.extension, (FILE_EXTENSION_STEP,), locations))
    return comments


def _of_messages(
    scope: str, messages: Iterable[DescriptorProto], path: tuple[int, ...], locations: Locations
) -> Iterator[tuple[tuple[str, int], str]]:
    for index, message in enumerate(messages):
        field_path = (*path, index)
        name = f"{scope}{message.name}"
        for position, field in enumerate(message.field):
            if line := _line(locations, (*field_path, FIELD_STEP, position)):
                yield (name, field.number), line
        yield from _of_extensions(message.extension, (*field_path, EXTENSION_STEP), locations)
        yield from _of_messages(f"{name}.", message.nested_type, (*field_path, NESTED_STEP), locations)


def _of_extensions(
    extensions: Iterable[FieldDescriptorProto], path: tuple[int, ...], locations: Locations
) -> Iterator[tuple[tuple[str, int], str]]:
    for index, extension in enumerate(extensions):
        if line := _line(locations, (*path, index)):
            yield (extension.extendee.removeprefix("."), extension.number), line


def _line(locations: Locations, path: tuple[int, ...]) -> str:
    location = locations.get(path)
    return "" if location is None else one_line(_text(location))


def _text(location: SourceCodeInfo.Location) -> str:
    return location.leading_comments or location.trailing_comments
