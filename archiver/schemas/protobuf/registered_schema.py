"""Schemas from a schema registry, and their compilation to descriptors.

A registered schema is `.proto` text or a `FileDescriptorProto` in base64, with the schemas it refers to. Envelopes name
one of its messages by indexes: the place in the file, then the place among the messages nested in that one, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Self, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from archiver.errors import BadSchema, ConfigError
from archiver.schemas.protobuf.compile_registered import MAIN_FILE, RegisteredFiles, from_base64
from archiver.schemas.protobuf.schema_files import read_schema_file
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from catalog.model import SchemaNumber
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import SourceSchema, add_files, parse_descriptor_set
from schema_mapping.protobuf.type_graph import source_graph

Indexes: TypeAlias = tuple[int, ...]

REPLACING_FILE: Final = "replacing-schema.proto"
_FIRST_BYTE: Final = b"\x0a"
"""The first byte of a descriptor set with a file: the tag of its field 1. Kept schemas of other kinds have another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchema:
    """A registered schema as descriptors. `main` is the file whose messages the indexes count."""

    id: SchemaNumber
    main: FileDescriptorProto
    files: FileDescriptorSet

    def messages_at(self, indexes: Indexes) -> frozenset[str]:
        """The full names of the messages that the indexes may mean; see the function of this name."""
        return messages_at(self.main, indexes)

    def source(self, message: str, extensions: tuple[str, ...] = ()) -> SourceSchema:
        """The schema of one of its messages. Raises BadSchema, with the id, if it lacks the message or an extension."""
        source = SourceSchema(descriptor_set=self.to_bytes(), message=message, extensions=extensions)
        try:
            source_graph(source)
        except DescriptorError as error:
            raise BadSchema(error.message, **number_context(self.id), **error.context) from error
        return source

    def to_bytes(self) -> bytes:
        """The schema as a serialized descriptor set. `from_bytes` turns it back into an equal schema."""
        return self.files.SerializeToString(deterministic=True)

    @classmethod
    def from_bytes(cls, schema_id: SchemaNumber, data: bytes) -> Self | None:
        """The schema that `to_bytes` gave. None if it took the place of a registered one."""
        files = FileDescriptorSet.FromString(data)
        if any(file.name == REPLACING_FILE for file in files.file):
            return None
        return cls(id=schema_id, main=_named(files, MAIN_FILE), files=files)


@dataclass(frozen=True, slots=True)
class ProtobufSchemas:
    """Protobuf as a kind of registered schemas. Its other form is a `FileDescriptorProto` in base64.

    `imports` are folders of imports that the registry lacks. `replaced` has the schemas, as `read_replacement` returns
    them, that take the place of these ids and GUIDs.
    """

    name: str = "PROTOBUF"
    label: str = "Protobuf"
    other_form: str = "serialized"
    imports: tuple[Path, ...] = ()
    replaced: tuple[tuple[SchemaNumber, bytes], ...] = ()

    def is_other_form(self, text: str) -> bool:
        """Whether a schema is a `FileDescriptorProto` in base64, not text."""
        return from_base64(text) is not None

    def replacement(self, number: SchemaNumber) -> CompiledSchema | None:
        """The schema that is configured for this id or GUID."""
        return next((_replacing(number, data) for replaced, data in self.replaced if replaced == number), None)

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> CompiledSchema:
        """Compile a schema. Raises BadSchema, with the id, if protoc refuses it or a file is missing."""
        for folder in self.imports:
            if not folder.is_dir():
                raise ConfigError("there is no such import folder", folder=str(folder))
        files = RegisteredFiles.of(schema.text, schema.references, self.imports)
        try:
            compiled = files.compiled_leniently() if leniently else files.compiled()
        except ConfigError as error:
            context = {key: value for key, value in error.context.items() if key != "file"}
            raise BadSchema(error.message, **number_context(schema.id), **context) from error
        return CompiledSchema(id=schema.id, main=_named(compiled, MAIN_FILE), files=compiled)

    def from_bytes(self, number: SchemaNumber, data: bytes) -> CompiledSchema | None:
        """The schema that `CompiledSchema.to_bytes` wrote. None if another kind wrote it, or a replaced schema was."""
        if (replacement := self.replacement(number)) is not None:
            return replacement
        return CompiledSchema.from_bytes(number, data) if data.startswith(_FIRST_BYTE) else None


PROTOBUF_SCHEMAS: Final = ProtobufSchemas()


def read_replacement(path: Path) -> bytes:
    """Read a schema for an id or GUID from a descriptor-set file. Its last file has the messages that indexes count.

    Raises ConfigError if the file can't be read, isn't a descriptor set, or lacks an import.
    """
    try:
        files = parse_descriptor_set(read_schema_file(path))
        by_name = {file.name: file for file in files.file}
        add_files(DescriptorPool(), by_name, by_name, "")
    except DescriptorError as error:
        inner = {"schema_file": error.context["file"]} if "file" in error.context else {}
        raise ConfigError(error.message, **{**error.context, "file": str(path), **inner}) from error
    files.file[-1].name = REPLACING_FILE
    return files.SerializeToString(deterministic=True)


@lru_cache(maxsize=64)
def _replacing(number: SchemaNumber, data: bytes) -> CompiledSchema:
    files = FileDescriptorSet.FromString(data)
    return CompiledSchema(id=number, main=_named(files, REPLACING_FILE), files=files)


def messages_at(main: FileDescriptorProto, indexes: Indexes) -> frozenset[str]:
    """The full names of the messages that the indexes may mean.

    Java counts only declared messages; other clients also count the entry messages of maps. If the two differ, the
    result has both names.
    """
    found = (_at(main, indexes, with_entries=each) for each in (False, True))
    return frozenset(name for name in found if name is not None)


def indexes_of(main: FileDescriptorProto, message: str) -> Indexes | None:
    """The indexes of a message, as Java counts them. None if the file doesn't declare it."""
    scope = f"{main.package}." if main.package else ""
    if not message.startswith(scope):
        return None
    found: list[int] = []
    declared: Iterable[DescriptorProto] = main.message_type
    for name in message.removeprefix(scope).split("."):
        counted = [each for each in declared if not each.options.map_entry]
        at = next((place for place, each in enumerate(counted) if each.name == name), None)
        if at is None:
            return None
        found.append(at)
        declared = counted[at].nested_type
    return tuple(found)


def _named(files: FileDescriptorSet, name: str) -> FileDescriptorProto:
    return next(file for file in files.file if file.name == name)


def _at(file: FileDescriptorProto, indexes: Indexes, *, with_entries: bool) -> str | None:
    declared: Iterable[DescriptorProto] = file.message_type
    name = file.package
    for index in indexes:
        counted = [each for each in declared if with_entries or not each.options.map_entry]
        if not 0 <= index < len(counted):
            return None
        name = f"{name}.{counted[index].name}" if name else counted[index].name
        declared = counted[index].nested_type
    return name if indexes else None
