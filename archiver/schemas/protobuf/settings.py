"""The settings of Protobuf keys and values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from archiver.config.formats import ProtobufFormat
from archiver.errors import BadSchema, ConfigError
from archiver.schemas.format_settings import ProposedFile, SchemaPlace
from archiver.schemas.protobuf.message_choice import MessageChoice, write_envelope
from archiver.schemas.protobuf.registered_schema import (
    PROTOBUF_SCHEMAS,
    CompiledSchema,
    ProtobufSchemas,
    indexes_of,
    read_replacement,
)
from archiver.schemas.protobuf.schema_files import compile_proto, read_descriptor_set
from archiver.schemas.protobuf.schema_ids import SchemaRegistryIds
from archiver.schemas.registry.envelope import EnvelopeReader, RegistryEnvelopes
from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema
from schema_mapping.value_format import DeclaredSchema

FIRST: Final = (0,)
PROTO: Final = ".proto"


@dataclass(frozen=True, slots=True)
class ProtobufSettings:
    name: str = "protobuf"
    suffixes: tuple[str, ...] = (PROTO,)
    kind: ProtobufSchemas = PROTOBUF_SCHEMAS
    registered_section: str = '{ format = "protobuf", wire_format = "confluent" }'
    inference: None = None

    def source_schema(self, settings: ProtobufFormat, place: SchemaPlace) -> MessageSchema:
        """Raises ConfigError if a file can't be read, and subclasses of SchemaRegistryError."""
        if settings.wire_format == "confluent":
            return _registered(settings, place)
        assert settings.message is not None
        if isinstance(settings.descriptors, Path):
            return read_descriptor_set(settings.descriptors, settings.message, settings.extensions)
        return compile_proto(settings.proto, settings.message, settings.imports, settings.extensions)

    def envelope_reader(
        self, settings: ProtobufFormat, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        """None for messages without envelopes."""
        if settings.wire_format == "plain":
            return None
        assert schema is not None
        assert place.subjects is not None
        registry = place.subjects.ids(_subject_of_ids(settings, place), kind_of(settings))
        ids = SchemaRegistryIds(registry=registry).with_schemas(place.subjects.schemas)
        choice = MessageChoice(messages=schema.messages, ids=ids)
        return RegistryEnvelopes(choice=choice, coerce=settings.coerce, header=place.header)

    def next_schema(self, file: ProposedFile, settings: ProtobufFormat | None) -> MessageSchema:
        """The file's message replaces the one of its name, or is added. Raises ConfigError."""
        today = file.today
        if not isinstance(today, SourceSchema | UnionSchema | None):
            raise ConfigError(
                "the topic's values aren't Protobuf, so a .proto can't be their next schema",
                topic=file.topic,
                format=today.format,
            )
        read = _read_proposed(file, settings, today)
        match today:
            case UnionSchema():
                members = (member for member in today.members if member.message != read.message)
                return UnionSchema(members=(*members, read))
            case SourceSchema():
                return replace(read, envelope=today.envelope)
            case None:
                return read


PROTOBUF_SETTINGS: Final = ProtobufSettings()


def kind_of(settings: ProtobufFormat) -> ProtobufSchemas:
    """Raises ConfigError if a file or folder can't be read."""
    for folder in settings.imports:
        if not folder.is_dir():
            raise ConfigError("there is no such import folder", folder=str(folder))
    files = settings.descriptors if isinstance(settings.descriptors, tuple) else ()
    replaced = tuple((number, read_replacement(path)) for number, path in files)
    return replace(PROTOBUF_SCHEMAS, imports=settings.imports, replaced=replaced)


def _read_proposed(file: ProposedFile, settings: ProtobufFormat | None, today: MessageSchema | None) -> SourceSchema:
    name = file.message or (settings and settings.message) or _only_message(today)
    if name is None:
        what = "has several message types" if today is not None else "has no schema yet"
        raise ConfigError(f"The topic {what}: name the message with --message", topic=file.topic)
    extensions = () if settings is None else settings.extensions
    if file.path.suffix != PROTO:
        return read_descriptor_set(file.path, name, extensions)
    if settings is None:
        return compile_proto(file.path, name, file.imports)
    return compile_proto((file.path, *settings.proto[1:]), name, (*file.imports, *settings.imports), extensions)


def _only_message(today: MessageSchema | None) -> str | None:
    return today.messages[0] if today is not None and len(today.messages) == 1 else None


def _subject_of_ids(settings: ProtobufFormat, place: SchemaPlace) -> str | None:
    """None if only the record names its subject."""
    if settings.subject is None and settings.subject_strategy != "topic_name":
        return None
    return subject_of(settings, place, None)


def subject_of(settings: ProtobufFormat, place: SchemaPlace, message: str | None) -> str:
    if settings.subject is not None:
        return settings.subject
    match settings.subject_strategy:
        case "topic_name":
            return f"{place.topic}-{place.part}"
        case "record_name":
            return str(message)
        case "topic_record_name":
            return f"{place.topic}-{message}"


def _registered(settings: ProtobufFormat, place: SchemaPlace) -> MessageSchema:
    if settings.messages:
        members = tuple(_latest(settings, place, message) for message in settings.messages)
        taken = {name for member in members for name in member.extensions}
        if unused := [name for name in settings.extensions if name not in taken]:
            raise BadSchema(
                "none of the `messages` has anything that this extends", topic=place.topic, extensions=unused
            )
        return UnionSchema(members=members)
    return _latest(settings, place, settings.message)


def _latest(settings: ProtobufFormat, place: SchemaPlace, message: str | None) -> SourceSchema:
    assert place.subjects is not None
    subject = subject_of(settings, place, message)
    latest = place.subjects.latest(subject, kind_of(settings))
    name = message or min(latest.messages_at(FIRST), default=None)
    if name is None:
        raise BadSchema("the subject's schema declares no message", subject=subject, schema_id=latest.id)
    source = latest.source(name, _extensions(settings, latest, name))
    return source if not settings.coerce else replace(source, envelope=_envelope(latest, name, subject))


def _extensions(settings: ProtobufFormat, schema: CompiledSchema, message: str) -> tuple[str, ...]:
    if not settings.messages:
        return settings.extensions
    schema.source(message)
    fitting: list[str] = []
    for name in settings.extensions:
        with suppress(BadSchema):
            fitting += schema.source(message, (name,)).extensions
    return tuple(fitting)


def _envelope(schema: CompiledSchema, message: str, subject: str) -> bytes:
    """Raises BadSchema if the schema's own file doesn't declare the message."""
    indexes = indexes_of(schema.main, message)
    if indexes is None:
        raise BadSchema(
            "`coerce` needs the id under which the message is registered, and the subject's schema only imports it",
            subject=subject,
            schema_id=schema.id,
            message=message,
        )
    assert isinstance(schema.id, int)
    return write_envelope(schema.id, indexes)
