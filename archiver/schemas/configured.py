"""From a topic's format settings to its schema, the limits of its mapping, and how its envelopes are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from archiver.config.model import FormatConfig, ProtobufFormat, RawFormat, SchemaRegistrySection, TopicSection
from archiver.errors import BadSchema
from archiver.schemas.envelope import EnvelopeReader
from archiver.schemas.files import read_descriptor_set
from archiver.schemas.protoc import compile_proto
from archiver.schemas.registry import RegistrySettings, SchemaRegistry
from archiver.schemas.schema_ids import RegistryIds
from schema_mapping.descriptors import SourceSchema
from schema_mapping.options import MappingOptions

Part: TypeAlias = Literal["key", "value"]
FIRST = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """Whose schema is wanted: a topic's key or value, with the schema registry if there is one."""

    topic: str
    part: Part
    registry: SchemaRegistrySection | None = None


def source_schema(settings: FormatConfig, place: SchemaPlace) -> SourceSchema | None:
    """The schema that a key's or value's settings name; None for raw.

    Raises ConfigError where a file can't be read, the leaves of SchemaRegistryError where the registry has none.
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
    settings: FormatConfig, schema: SourceSchema | None, registry: SchemaRegistrySection | None
) -> EnvelopeReader | None:
    """How the envelopes of a key or value are read; None where it has none."""
    if not isinstance(settings, ProtobufFormat) or settings.wire_format == "plain":
        return None
    assert schema is not None
    assert registry is not None
    return EnvelopeReader(message=schema.message, ids=RegistryIds(settings=registry_settings(registry)))


def registry_settings(section: SchemaRegistrySection) -> RegistrySettings:
    """The settings of a client."""
    return RegistrySettings(
        urls=tuple(url.strip() for url in section.url.split(",")),
        username=section.username,
        password=section.password,
        token=section.token,
        ca_file=_text(section.ca_file),
        cert_file=_text(section.cert_file),
        key_file=_text(section.key_file),
        timeout=section.timeout,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def subject_of(settings: ProtobufFormat, place: SchemaPlace) -> str:
    """The subject under which the registry has the schema."""
    if settings.subject is not None:
        return settings.subject
    match settings.subject_strategy:
        case "topic_name":
            return f"{place.topic}-{place.part}"
        case "record_name":
            return str(settings.message)
        case "topic_record_name":
            return f"{place.topic}-{settings.message}"


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


def _registered(settings: ProtobufFormat, place: SchemaPlace) -> SourceSchema:
    assert place.registry is not None
    subject = subject_of(settings, place)
    latest = SchemaRegistry(registry_settings(place.registry)).latest(subject)
    message = settings.message or min(latest.messages_at(FIRST), default=None)
    if message is None:
        raise BadSchema("the subject's schema declares no message", subject=subject, schema_id=latest.id)
    return latest.source(message, settings.extensions)
