"""Schemas from a schema registry, and their compilation to descriptors.

A registered schema is `.proto` text or a `FileDescriptorProto` in base64, with the schemas it refers to. Envelopes name
one of its messages by indexes: the place in the file, then the place among the messages nested in that one, and so on.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeAlias

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from archiver.errors import BadSchema, ConfigError
from archiver.schemas.protobuf.schema_files import compile_files
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from catalog.model import SchemaNumber
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import SourceSchema
from schema_mapping.protobuf.type_graph import source_graph

Indexes: TypeAlias = tuple[int, ...]

MAIN_FILE: Final = "registered-schema.proto"
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
    def from_bytes(cls, schema_id: SchemaNumber, data: bytes) -> Self:
        """The schema that `to_bytes` gave."""
        files = FileDescriptorSet.FromString(data)
        return cls(id=schema_id, main=_main(files), files=files)


@dataclass(frozen=True, slots=True)
class ProtobufSchemas:
    """Protobuf as a kind of registered schemas. Its other form is a `FileDescriptorProto` in base64."""

    name: str = "PROTOBUF"
    label: str = "Protobuf"
    other_form: str = "serialized"

    def is_other_form(self, text: str) -> bool:
        """Whether a schema is a `FileDescriptorProto` in base64, not text."""
        return _from_base64(text) is not None

    def read(self, schema: RegisteredSchema) -> CompiledSchema:
        """Compile a schema. Raises BadSchema, with the id, if protoc refuses it or a file is missing."""
        return compile_registered(schema)

    def from_bytes(self, number: SchemaNumber, data: bytes) -> CompiledSchema | None:
        """The schema that `CompiledSchema.to_bytes` wrote. None if another kind wrote it."""
        return CompiledSchema.from_bytes(number, data) if data.startswith(_FIRST_BYTE) else None


PROTOBUF_SCHEMAS: Final = ProtobufSchemas()


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


def compile_registered(schema: RegisteredSchema) -> CompiledSchema:
    """Compile a schema to descriptors. Raises BadSchema, with the id, if protoc refuses it or a file is missing."""
    ready: dict[str, FileDescriptorProto] = {}
    texts: dict[str, str] = {}
    for name, text in {**schema.references, MAIN_FILE: schema.text}.items():
        parsed = _from_base64(text)
        if parsed is None:
            texts[name] = text
        else:
            parsed.name = name
            ready[name] = parsed
    try:
        files = _compile(texts, ready)
    except ConfigError as error:
        raise BadSchema(error.message, **number_context(schema.id)) from error
    return CompiledSchema(id=schema.id, main=_main(files), files=files)


def _main(files: FileDescriptorSet) -> FileDescriptorProto:
    return next(file for file in files.file if file.name == MAIN_FILE)


def _compile(texts: Mapping[str, str], ready: Mapping[str, FileDescriptorProto]) -> FileDescriptorSet:
    if not texts:
        return FileDescriptorSet(file=ready.values())
    with tempfile.TemporaryDirectory(prefix="archiver-schema-") as folder:
        for name, text in texts.items():
            path = Path(folder, name)
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                raise ConfigError("a reference leaves its folder", reference=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        compiled = FileDescriptorSet.FromString(
            compile_files(Path(folder), sorted(texts), FileDescriptorSet(file=ready.values()))
        )
    files = {file.name: file for file in (*compiled.file, *ready.values())}
    return FileDescriptorSet(file=files.values())


def _from_base64(text: str) -> FileDescriptorProto | None:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


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
