"""The schemas of a topic: reads what its settings name, from files or the schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from archiver.config.model import FormatConfig, ProtobufFormat, SchemaRegistrySection, TopicConfig
from archiver.errors import ConfigError, SchemaRegistryError
from archiver.schemas.format_settings import Part, SchemaPlace, envelope_reader, source_schema
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.schemas.registry.subjects import NOTHING, Subjects
from catalog.model import TopicRow
from catalog.registry.last_known import KnownSchemas
from schema_mapping.protobuf.descriptors import MessageSchema
from schema_mapping.value_format import DeclaredSchema

if TYPE_CHECKING:
    from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """A topic's settings with its schemas and the readers of its envelopes.

    `schema_registry` names the schema registry that was asked, if any. `news` has what it said that wasn't known yet.
    `schema_registry_down` is the error if it didn't answer, or deleted a subject, and the last known schemas were used.
    """

    config: TopicConfig
    key: DeclaredSchema | None
    value: DeclaredSchema | None
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    schema_registry: str | None = None
    news: KnownSchemas = NOTHING
    schema_registry_down: SchemaRegistryError | None = None

    @staticmethod
    def check(config: TopicConfig, section: SchemaRegistrySection | None = None) -> None:
        """Check all that needs no schema registry. Raises ConfigError with the topic and the file."""
        for part, settings in _parts(config):
            if not has_envelopes(settings):
                _read(config, part, settings, None)
            elif section is not None:
                schema_registry_settings(section)

    @classmethod
    def read_or_recall(
        cls, config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        """Read the schemas; while the schema registry is down, use the last known ones from `registry` (Postgres).

        `known` is the topic's row, None if it was never archived. Raises what `read` raises.
        """
        name = schema_registry_name(config, section)
        if name is None or known is None:
            return cls.read(config, section)
        return cls.read(config, section, registry.last_known.recall_schemas(known, name))

    @classmethod
    def read(
        cls,
        config: TopicConfig,
        section: SchemaRegistrySection | None = None,
        remembered: KnownSchemas = NOTHING,
    ) -> TopicSchemas:
        """Read the schemas. `remembered` has the last known ones of the schema registry.

        Raises ConfigError with the topic and the file, and the subclasses of SchemaRegistryError.
        """
        uses = section is not None and any(map(has_envelopes, (config.key, config.value)))
        subjects = Subjects(section, remembered) if section is not None and uses else None
        key, value = (_read(config, part, settings, subjects) for part, settings in _parts(config))
        key_place, value_place = (
            SchemaPlace(topic=config.name, part=part, subjects=subjects) for part, _ in _parts(config)
        )
        return cls(
            config=config,
            key=key,
            value=value,
            key_envelope=envelope_reader(config.key, key, key_place),
            value_envelope=envelope_reader(config.value, value, value_place),
            schema_registry=None if subjects is None else subjects.registry_name,
            news=NOTHING if subjects is None else subjects.news,
            schema_registry_down=None if subjects is None else subjects.down,
        )


class SchemaReader(Protocol):
    """A function that reads a topic's schemas, such as `TopicSchemas.read_or_recall`."""

    def __call__(
        self, config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        """Read the topic's schemas. Raises ConfigError, and the subclasses of SchemaRegistryError."""


def _parts(config: TopicConfig) -> tuple[tuple[Part, FormatConfig], ...]:
    return ("key", config.key), ("value", config.value)


def _read(config: TopicConfig, part: Part, settings: FormatConfig, subjects: Subjects | None) -> MessageSchema | None:
    try:
        return source_schema(settings, SchemaPlace(topic=config.name, part=part, subjects=subjects))
    except ConfigError as error:
        raise ConfigError(error.message, topic=config.name, **error.context) from error


def has_envelopes(settings: FormatConfig) -> bool:
    """Whether the settings say that keys or values begin with a schema registry's envelope."""
    return isinstance(settings, ProtobufFormat) and settings.wire_format == "confluent"


def schema_registry_name(config: TopicConfig, section: SchemaRegistrySection | None) -> str | None:
    """The name of the schema registry that the topic needs. None if it needs none."""
    if section is None or not any(map(has_envelopes, (config.key, config.value))):
        return None
    return schema_registry_settings(section).name
