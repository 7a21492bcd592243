"""Comments of a .proto as the text that tables show for their columns: one line, at most 255 characters.

They say nothing about bytes, so they are no part of a fingerprint: a new schema version brings the comments it stands
with, and a changed comment alone waits for the next version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, SourceCodeInfo

from schema_mapping import names
from schema_mapping.descriptors import SourceSchema, parse_descriptor_set
from schema_mapping.ledger_tree import Node
from schema_mapping.type_graph import TypeGraph

Comments: TypeAlias = Mapping[tuple[str, int], str]
Locations: TypeAlias = Mapping[tuple[int, ...], SourceCodeInfo.Location]

LONGEST: Final = 255
ELLIPSIS: Final = "\u2026"
MESSAGE_STEP: Final = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
NESTED_STEP: Final = DescriptorProto.NESTED_TYPE_FIELD_NUMBER
FIELD_STEP: Final = DescriptorProto.FIELD_FIELD_NUMBER
EXTENSION_STEP: Final = DescriptorProto.EXTENSION_FIELD_NUMBER
FILE_EXTENSION_STEP: Final = FileDescriptorProto.EXTENSION_FIELD_NUMBER


def read_comments(source: SourceSchema) -> Comments:
    """Comments of fields by message name and field number; what stands above a field wins over what stands beside it.

    Empty where the descriptors were made without source info.
    """
    found: dict[tuple[str, int], str] = {}
    for file in parse_descriptor_set(source.descriptor_set).file:
        locations = {tuple(each.path): each for each in file.source_code_info.location if _said(each)}
        if locations:
            scope = f"{file.package}." if file.package else ""
            found.update(_of_messages(scope, file.message_type, (MESSAGE_STEP,), locations))
            found.update(_of_extensions(file.extension, (FILE_EXTENSION_STEP,), locations))
    return found


def document(struct: Node, graph: TypeGraph, comments: Comments) -> None:
    """Gives the live columns below a root the comments of their fields, and none to those without."""
    _document(struct, graph, graph.root, comments)


def one_line(text: str) -> str:
    """A comment without its line breaks and margins, cut to 255 characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - len(ELLIPSIS)].rstrip() + ELLIPSIS


def _of_messages(
    scope: str, messages: Iterable[DescriptorProto], path: tuple[int, ...], locations: Locations
) -> Iterator[tuple[tuple[str, int], str]]:
    for index, message in enumerate(messages):
        here = (*path, index)
        name = f"{scope}{message.name}"
        for position, field in enumerate(message.field):
            if line := _line(locations, (*here, FIELD_STEP, position)):
                yield (name, field.number), line
        yield from _of_extensions(message.extension, (*here, EXTENSION_STEP), locations)
        yield from _of_messages(f"{name}.", message.nested_type, (*here, NESTED_STEP), locations)


def _of_extensions(
    extensions: Iterable[FieldDescriptorProto], path: tuple[int, ...], locations: Locations
) -> Iterator[tuple[tuple[str, int], str]]:
    for index, extension in enumerate(extensions):
        if line := _line(locations, (*path, index)):
            yield (extension.extendee.removeprefix("."), extension.number), line


def _line(locations: Locations, path: tuple[int, ...]) -> str:
    location = locations.get(path)
    return "" if location is None else one_line(_said(location))


def _said(location: SourceCodeInfo.Location) -> str:
    return location.leading_comments or location.trailing_comments


def _document(struct: Node, graph: TypeGraph, message: str, comments: Comments) -> None:
    live = {node.step: node for node in struct.children if node.live}
    for field in graph.types[message].fields:
        node = live.get(field.number)
        if node is None:
            continue
        node.doc = comments.get((message, field.number))
        target = field.held_message
        if target is not None:
            steps = (names.ELEMENT_STEP, names.MAP_VALUE_STEP)
            _document(next((each for each in node.children if each.step in steps), node), graph, target, comments)
