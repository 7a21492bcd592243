"""Registered schemas: `.proto` text, or a `FileDescriptorProto` in base64.

Indexes count messages in the file, then messages nested in that one, and so on.
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
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from archiver.schemas.schema_file import read_schema_file
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
    """Indexes count the messages of the file `main`."""

    id: SchemaNumber
    main: FileDescriptorProto
    files: FileDescriptorSet

    def messages_at(self, indexes: Indexes) -> frozenset[str]:
        return messages_at(self.main, indexes)

    def source(self, message: str, extensions: tuple[str, ...] = ()) -> SourceSchema:
        """Raises BadSchema, with the id."""
        source = SourceSchema(descriptor_set=self.to_bytes(), message=message, extensions=extensions)
        try:
            source_graph(source)
        except DescriptorError as error:
            raise BadSchema(error.message, **number_context(self.id), **error.context) from error
        return source

    def to_bytes(self) -> bytes:
        return self.files.SerializeToString(deterministic=True)

    @classmethod
    def from_bytes(cls, schema_id: SchemaNumber, data: bytes) -> Self | None:
        """None if the schema replaced a registered one."""
        files = FileDescriptorSet.FromString(data)
        if any(file.name == REPLACING_FILE for file in files.file):
            return None
        return cls(id=schema_id, main=_named(files, MAIN_FILE), files=files)


@dataclass(frozen=True, slots=True)
class ProtobufSchemas:
    """`imports` are folders of imports that the registry lacks. `replaced` is configured."""

    name: str = "PROTOBUF"
    label: str = "Protobuf"
    other_form: str = "serialized"
    imports: tuple[Path, ...] = ()
    replaced: tuple[tuple[SchemaNumber, bytes], ...] = ()

    def is_other_form(self, text: str) -> bool:
        return from_base64(text) is not None

    def replacement(self, number: SchemaNumber) -> CompiledSchema | None:
        return next((_replacing(number, data) for replaced, data in self.replaced if replaced == number), None)

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> CompiledSchema:
        """Raises BadSchema, with the id."""
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
        """None if another kind wrote the bytes, or the schema was replaced."""
        if (replacement := self.replacement(number)) is not None:
            return replacement
        return CompiledSchema.from_bytes(number, data) if data.startswith(_FIRST_BYTE) else None


PROTOBUF_SCHEMAS: Final = ProtobufSchemas()


def read_replacement(path: Path) -> bytes:
    """Indexes count the messages of the last file. Raises ConfigError."""
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
    """The messages that indexes may mean.

    Java counts declared messages; other clients also count entry messages of maps. If they differ, both count.
    """
    names = (_at(main, indexes, with_entries=flag) for flag in (False, True))
    return frozenset(name for name in names if name is not None)


def indexes_of(main: FileDescriptorProto, message: str) -> Indexes | None:
    """As in Java. None if the file doesn't declare the message."""
    scope = f"{main.package}." if main.package else ""
    if not message.startswith(scope):
        return None
    indexes: list[int] = []
    declared: Iterable[DescriptorProto] = main.message_type
    for name in message.removeprefix(scope).split("."):
        counted = [declaration for declaration in declared if not declaration.options.map_entry]
        at = next((position for position, declaration in enumerate(counted) if declaration.name == name), None)
        if at is None:
            return None
        indexes.append(at)
        declared = counted[at].nested_type
    return tuple(indexes)


def _named(files: FileDescriptorSet, name: str) -> FileDescriptorProto:
    return next(file for file in files.file if file.name == name)


def _at(file: FileDescriptorProto, indexes: Indexes, *, with_entries: bool) -> str | None:
    declared: Iterable[DescriptorProto] = file.message_type
    name = file.package
    for index in indexes:
        counted = [message for message in declared if with_entries or not message.options.map_entry]
        if not 0 <= index < len(counted):
            return None
        name = f"{name}.{counted[index].name}" if name else counted[index].name
        declared = counted[index].nested_type
    return name if indexes else None
