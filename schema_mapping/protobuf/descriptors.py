"""Protobuf schemas as values and as descriptors."""

from __future__ import annotations

import base64
import difflib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from google.protobuf import __version__ as protobuf_version
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.column_options import OPTIONS_FILE, options_file
from schema_mapping.protobuf.json_names import add_file

PROTOBUF_FORMAT: Final = "protobuf"
UNION_FORMAT: Final = "protobuf_messages"

WELL_KNOWN = "google/protobuf/"
NEAR_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSchema:
    """`extensions` become columns. `envelope` is for a coerced replay."""

    descriptor_set: bytes
    message: str
    extensions: tuple[str, ...] = ()
    envelope: bytes | None = None

    @property
    def format(self) -> str:
        return PROTOBUF_FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.message,)

    def to_json(self) -> dict[str, Any]:
        """Everything except the envelope."""
        return {
            "message": self.message,
            "extensions": list(self.extensions),
            "descriptors": base64.b64encode(self.descriptor_set).decode(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            descriptor_set=base64.b64decode(data["descriptors"]),
            message=data["message"],
            extensions=tuple(data.get("extensions", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionSchema:
    """Several message types, of which a value has one."""

    members: tuple[SourceSchema, ...]

    @property
    def format(self) -> str:
        return UNION_FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(member.message for member in self.members)

    @property
    def envelope(self) -> None:
        """Only the envelope says which message a value is."""
        return None


MessageSchema: TypeAlias = SourceSchema | UnionSchema
"""The Protobuf schema of a topic's key or value."""


def closure(descriptor: Descriptor, extensions: tuple[str, ...] = ()) -> SourceSchema:
    """Files are imports first, else by name, without comments. Raises KeyError without an extension."""
    files: dict[str, FileDescriptor] = {}
    _add_imports_first(descriptor.file, files)
    for name in sorted(extensions):
        _add_imports_first(descriptor.file.pool.FindFileContainingSymbol(name), files)
    result = FileDescriptorSet()
    for file in files.values():
        proto = FileDescriptorProto.FromString(file.serialized_pb)
        proto.ClearField("source_code_info")
        result.file.append(proto)
    return SourceSchema(
        descriptor_set=result.SerializeToString(deterministic=True),
        message=descriptor.full_name,
        extensions=extensions,
    )


def _add_imports_first(file: FileDescriptor, files: dict[str, FileDescriptor]) -> None:
    if file.name in files:
        return
    for dependency in sorted(file.dependencies, key=lambda imported: imported.name):
        _add_imports_first(dependency, files)
    files[file.name] = file


def find_descriptor(source: SourceSchema) -> Descriptor:
    """The descriptor is in a new pool.

    Raises DescriptorError, with similar names, for bad bytes, missing imports, contradictions, or a missing message or
    extension.
    """
    files = {file.name: file for file in parse_descriptor_set(source.descriptor_set).file}
    homes = {name: file.name for file in files.values() for name in message_names(file)}
    if source.message not in homes:
        raise DescriptorError(missing_message(source.message, tuple(homes)))
    pool = DescriptorPool()
    needed = (homes[source.message], *_homes_of_extensions(source.extensions, files.values()))
    add_files(pool, files, needed, source.message)
    return pool.FindMessageTypeByName(source.message)


def missing_message(message: str, names: tuple[str, ...]) -> str:
    if not names:
        return f"message {message!r} isn't in the schema, which holds no message at all"
    short = message.rpartition(".")[2].lower()
    same = [name for name in names if name.rpartition(".")[2].lower() == short]
    near = same or difflib.get_close_matches(message, names, n=NEAR_NAMES, cutoff=0.5)
    if near:
        return f"message {message!r} isn't in the schema; did you mean {' or '.join(near[:NEAR_NAMES])}?"
    more = f" and {len(names) - NEAR_NAMES} more" if len(names) > NEAR_NAMES else ""
    return f"message {message!r} isn't in the schema, which holds {', '.join(names[:NEAR_NAMES])}{more}"


def message_names(file: FileDescriptorProto) -> Iterator[str]:
    """Parents come first. Without map entries."""
    yield from (name for name, message in _messages(file) if not message.options.map_entry)


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    prefix = f"{file.package}." if file.package else ""
    stack = [(prefix, nested) for nested in reversed(file.message_type)]
    while stack:
        scope, message = stack.pop()
        yield f"{scope}{message.name}", message
        stack.extend((f"{scope}{message.name}.", nested) for nested in reversed(message.nested_type))


def _homes_of_extensions(names: tuple[str, ...], files: Iterable[FileDescriptorProto]) -> tuple[str, ...]:
    if not names:
        return ()
    homes = {name: file.name for file in files for name, _ in extensions_of(file)}
    for name in names:
        if name not in homes:
            near = difflib.get_close_matches(name, homes, n=NEAR_NAMES, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise DescriptorError(f"the schema has no extension {name!r}{hint}")
    return tuple(homes[name] for name in names)


def extensions_of(file: FileDescriptorProto) -> Iterator[tuple[str, FieldDescriptorProto]]:
    """By full name, also of messages."""
    prefix = f"{file.package}." if file.package else ""
    yield from ((f"{prefix}{extension.name}", extension) for extension in file.extension)
    for scope, message in _messages(file):
        yield from ((f"{scope}.{extension.name}", extension) for extension in message.extension)


def parse_descriptor_set(data: bytes) -> FileDescriptorSet:
    """Raises DescriptorError if the bytes aren't a descriptor set, or have no file."""
    try:
        parsed = FileDescriptorSet.FromString(data)
    except DecodeError as error:
        raise DescriptorError(
            "these bytes are no FileDescriptorSet; make one with `protoc --include_imports --descriptor_set_out=FILE`"
        ) from error
    if not parsed.file:
        raise DescriptorError("the FileDescriptorSet holds no file")
    return parsed


def add_files(
    pool: DescriptorPool, files: Mapping[str, FileDescriptorProto], wanted: Iterable[str], message: str
) -> None:
    """Raises DescriptorError if a file is missing or contradicts itself."""
    added: set[str] = set()

    def add(name: str, wanted_by: str, trail: tuple[str, ...]) -> None:
        if name in added:
            return
        if name in trail:
            raise DescriptorError("files import each other in a circle", files=(*trail, name), message=message)
        file = files.get(name) or _built_in(name)
        if file is None:
            raise DescriptorError(
                "an import is missing from the descriptor set; make it with `protoc --include_imports`",
                file=name,
                imported_by=wanted_by,
                message=message,
            )
        for dependency in sorted(file.dependency):
            add(dependency, name, (*trail, name))
        added.add(name)
        _check_edition(file)
        try:
            add_file(pool, file)
        except TypeError as error:
            raise DescriptorError(f"protobuf refuses a file of the schema: {error}", file=name) from error

    for name in wanted:
        add(name, "", ())


def _check_edition(file: FileDescriptorProto) -> None:
    # protobuf reads an edition that its enum lacks as an unknown field.
    if file.syntax != "editions" or file.HasField("edition"):
        return
    unknown: Any = UnknownFieldSet(file)
    numbers = (
        unknown_field.data for unknown_field in unknown if unknown_field.field_number == file.EDITION_FIELD_NUMBER
    )
    raise DescriptorError(
        "a file of the schema uses an edition that the protobuf library here doesn't know: upgrade `protobuf`",
        file=file.name,
        edition=next(numbers, None),
        protobuf=protobuf_version,
    )


def _built_in(name: str) -> FileDescriptorProto | None:
    if name == OPTIONS_FILE:
        return options_file()
    if not name.startswith(WELL_KNOWN):
        return None
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    try:
        generated = importlib.import_module(module)
    except ModuleNotFoundError:
        return None
    return FileDescriptorProto.FromString(generated.DESCRIPTOR.serialized_pb)
