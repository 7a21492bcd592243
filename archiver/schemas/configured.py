"""From a topic's format settings to its schema, the limits of its mapping, and how its envelopes are read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from archiver.config.model import FormatConfig, ProtobufFormat, RawFormat, TopicSection
from archiver.errors import BadSchema
from archiver.schemas.envelope import EnvelopeReader
from archiver.schemas.files import read_descriptor_set
from archiver.schemas.message_choice import MessageChoice, write_envelope
from archiver.schemas.protoc import compile_proto
from archiver.schemas.registered import CompiledSchema, indexes_of
from archiver.schemas.schema_ids import SchemaIds
from archiver.schemas.subjects import Subjects
from schema_mapping.columns.options import MappingOptions
from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema

Part: TypeAlias = Literal["key", "value"]
FIRST = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """Whose schema is wanted: a topic's key or value, with the subjects of the schema registry if there is one."""

    topic: str
    part: Part
    subjects: Subjects | None = None


def source_schema(settings: FormatConfig, place: SchemaPlace) -> MessageSchema | None:
    """The schema that a key's or value's settings name; None for raw.

    Raises ConfigError where a file can't be read, the leaves of SchemaRegistryError where the schema registry has none.
    """
    if isinstance(settings, RawFormat):
        return None
    if settings.wire_format == "confluent":
        return _registered(settings, place)
    assert settings.message is not None
    if settings.descriptors is not None:
        return read_descriptor_set(settings.descriptors, settings.message, settings.extensions)
    return compile_proto(settings.proto, settings.message, settings.imports, settings.extensions)


def envelope_reader(
    settings: FormatConfig, schema: MessageSchema | None, ids: SchemaIds | None
) -> EnvelopeReader | None:
    """How the envelopes of a key or value are read; None where it has none."""
    if not isinstance(settings, ProtobufFormat) or settings.wire_format == "plain":
        return None
    assert schema is not None
    assert ids is not None
    return EnvelopeReader(choice=MessageChoice(messages=schema.messages, ids=ids), coerce=settings.coerce)


def subject_of(settings: ProtobufFormat, place: SchemaPlace, message: str | None) -> str:
    """The subject under which the schema registry has the schema of `message`."""
    if settings.subject is not None:
        return settings.subject
    match settings.subject_strategy:
        case "topic_name":
            return f"{place.topic}-{place.part}"
        case "record_name":
            return str(message)
        case "topic_record_name":
            return f"{place.topic}-{message}"


def mapping_options(topic: TopicSection) -> MappingOptions:
    """What a topic's settings say about its columns; of limits that differ for key and value, the wider ones."""
    formats = [each for each in (topic.key, topic.value) if isinstance(each, ProtobufFormat)]
    if not formats:
        return MappingOptions()
    return MappingOptions(
        max_depth=max(each.max_depth for each in formats),
        max_columns=max(each.max_columns for each in formats),
        keep_removed=topic.keep_removed,
        expand_cuts=topic.expand_cuts,
        well_known_types=topic.well_known_types,
        uint64=topic.uint64,
    )


def _registered(settings: ProtobufFormat, place: SchemaPlace) -> MessageSchema:
    if settings.messages:
        members = tuple(_latest(settings, place, each) for each in settings.messages)
        taken = {name for member in members for name in member.extensions}
        if unused := [name for name in settings.extensions if name not in taken]:
            raise BadSchema(
                "none of the `messages` has anything that this extends", topic=place.topic, extensions=unused
            )
        return UnionSchema(members=members)
    return _latest(settings, place, settings.message)


def _latest(settings: ProtobufFormat, place: SchemaPlace, message: str | None) -> SourceSchema:
    """The newest schema of a message; of the first that its subject declares where none is named."""
    assert place.subjects is not None
    subject = subject_of(settings, place, message)
    latest = place.subjects.latest(subject)
    name = message or min(latest.messages_at(FIRST), default=None)
    if name is None:
        raise BadSchema("the subject's schema declares no message", subject=subject, schema_id=latest.id)
    source = latest.source(name, _extensions(settings, latest, name))
    return source if not settings.coerce else replace(source, envelope=_envelope(latest, name, subject))


def _extensions(settings: ProtobufFormat, schema: CompiledSchema, message: str) -> tuple[str, ...]:
    """The extensions that become columns: all, or of several messages those that extend this one."""
    if not settings.messages:
        return settings.extensions
    schema.source(message)
    fitting: list[str] = []
    for name in settings.extensions:
        with suppress(BadSchema):
            fitting += schema.source(message, (name,)).extensions
    return tuple(fitting)


def _envelope(schema: CompiledSchema, message: str, subject: str) -> bytes:
    """What stands before a message of this schema; BadSchema where its file doesn't declare it."""
    indexes = indexes_of(schema.main, message)
    if indexes is None:
        raise BadSchema(
            "`coerce` needs the id under which the message is registered, and the subject's schema only imports it",
            subject=subject,
            schema_id=schema.id,
            message=message,
        )
    return write_envelope(schema.id, indexes)
