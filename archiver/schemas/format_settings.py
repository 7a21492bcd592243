"""What the format settings of a topic mean: its schemas, the limits of its mapping, and how to read its envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from archiver.config.model import FormatConfig, ProtobufFormat, RawFormat, TopicSection
from archiver.errors import BadSchema
from archiver.schemas.protobuf.message_choice import MessageChoice, write_envelope
from archiver.schemas.protobuf.registered_schema import CompiledSchema, indexes_of
from archiver.schemas.protobuf.schema_files import compile_proto, read_descriptor_set
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.registry.subjects import Subjects
from archiver.wire.header_ids import KEY_HEADER, VALUE_HEADER
from schema_mapping.columns.options import MappingOptions
from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema

Part: TypeAlias = Literal["key", "value"]
FIRST = (0,)
HEADERS: Final[Mapping[Part, bytes]] = {"key": KEY_HEADER, "value": VALUE_HEADER}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """What a schema is for: the key or the value of a topic. `subjects` asks the schema registry, if there is one."""

    topic: str
    part: Part
    subjects: Subjects | None = None


def source_schema(settings: FormatConfig, place: SchemaPlace) -> MessageSchema | None:
    """The schema that the settings of a key or value name. None for raw.

    Raises ConfigError if a file can't be read, and the subclasses of SchemaRegistryError if the schema registry doesn't
    give the schema.
    """
    if isinstance(settings, RawFormat):
        return None
    if settings.wire_format == "confluent":
        return _registered(settings, place)
    assert settings.message is not None
    if settings.descriptors is not None:
        return read_descriptor_set(settings.descriptors, settings.message, settings.extensions)
    return compile_proto(settings.proto, settings.message, settings.imports, settings.extensions)


def envelope_reader(settings: FormatConfig, schema: MessageSchema | None, place: SchemaPlace) -> EnvelopeReader | None:
    """The reader of the envelopes of a key or value. None if its settings say that it has no envelopes."""
    if not isinstance(settings, ProtobufFormat) or settings.wire_format == "plain":
        return None
    assert schema is not None
    assert place.subjects is not None
    ids = place.subjects.ids(_subject_of_ids(settings, place))
    return EnvelopeReader(
        choice=MessageChoice(messages=schema.messages, ids=ids), coerce=settings.coerce, header=HEADERS[place.part]
    )


def _subject_of_ids(settings: ProtobufFormat, place: SchemaPlace) -> str | None:
    """The subject whose context the ids of records count in. None if the record alone says which subject it is of."""
    if settings.subject is None and settings.subject_strategy != "topic_name":
        return None
    return subject_of(settings, place, None)


def subject_of(settings: ProtobufFormat, place: SchemaPlace, message: str | None) -> str:
    """The subject under which the schema registry keeps the schema of `message`."""
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
    """The options of a topic's columns. If key and value have different limits, the wider ones count."""
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
    """The newest schema of a message. If none is named, it is the first message that the subject's schema declares."""
    assert place.subjects is not None
    subject = subject_of(settings, place, message)
    latest = place.subjects.latest(subject)
    name = message or min(latest.messages_at(FIRST), default=None)
    if name is None:
        raise BadSchema("the subject's schema declares no message", subject=subject, schema_id=latest.id)
    source = latest.source(name, _extensions(settings, latest, name))
    return source if not settings.coerce else replace(source, envelope=_envelope(latest, name, subject))


def _extensions(settings: ProtobufFormat, schema: CompiledSchema, message: str) -> tuple[str, ...]:
    """The extensions that become columns of this message. If the topic has one message only, these are all."""
    if not settings.messages:
        return settings.extensions
    schema.source(message)
    fitting: list[str] = []
    for name in settings.extensions:
        with suppress(BadSchema):
            fitting += schema.source(message, (name,)).extensions
    return tuple(fitting)


def _envelope(schema: CompiledSchema, message: str, subject: str) -> bytes:
    """The envelope of a message of this schema. Raises BadSchema if the schema's own file doesn't declare it."""
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
