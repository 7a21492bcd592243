"""A topic's settings with the schemas that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from archiver.config.model import FormatConfig, ProtobufFormat, SchemaRegistrySection, TopicConfig
from archiver.errors import ConfigError, SchemaRegistryError
from archiver.schemas.configured import Part, SchemaPlace, envelope_reader, source_schema
from archiver.schemas.envelope import EnvelopeReader
from archiver.schemas.settings import schema_registry_settings
from archiver.schemas.subjects import NOTHING, Subjects
from catalog.model import TopicRow
from catalog.registry.last_known import KnownSchemas
from schema_mapping.protobuf.descriptors import MessageSchema
from schema_mapping.value_format import DeclaredSchema

if TYPE_CHECKING:
    from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """A topic's settings with its schemas, read, and how envelopes before its messages are.

    `schema_registry` names the one that was asked, if one was; `news` is what it said that wasn't remembered.
    `schema_registry_down` is why it couldn't be asked, where what is remembered stands in for it.
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
        """Read what can be read without asking a schema registry. Raises ConfigError, naming topic and file."""
        for part, settings in _parts(config):
            if not has_envelopes(settings):
                _read(config, part, settings, None)
            elif section is not None:
                schema_registry_settings(section)

    @classmethod
    def read_or_recall(
        cls, config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        """As `read`; while the schema registry is down by what is remembered of it for the topic, if it is `known`."""
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
        """Read the schemas. Raises ConfigError, naming topic and file, and the leaves of SchemaRegistryError."""
        uses = section is not None and any(map(has_envelopes, (config.key, config.value)))
        subjects = Subjects(section, remembered) if section is not None and uses else None
        key, value = (_read(config, part, settings, subjects) for part, settings in _parts(config))
        ids = None if subjects is None else subjects.ids
        return cls(
            config=config,
            key=key,
            value=value,
            key_envelope=envelope_reader(config.key, key, ids),
            value_envelope=envelope_reader(config.value, value, ids),
            schema_registry=None if ids is None else ids.settings.name,
            news=NOTHING if subjects is None else subjects.news,
            schema_registry_down=None if subjects is None else subjects.down,
        )


class SchemaReader(Protocol):
    """Reads a topic's schemas, as `TopicSchemas.read_or_recall` does."""

    def __call__(
        self, config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        """The topic's schemas. Raises ConfigError, and the leaves of SchemaRegistryError."""


def _parts(config: TopicConfig) -> tuple[tuple[Part, FormatConfig], ...]:
    return ("key", config.key), ("value", config.value)


def _read(config: TopicConfig, part: Part, settings: FormatConfig, subjects: Subjects | None) -> MessageSchema | None:
    try:
        return source_schema(settings, SchemaPlace(topic=config.name, part=part, subjects=subjects))
    except ConfigError as error:
        raise ConfigError(error.message, topic=config.name, **error.context) from error


def has_envelopes(settings: FormatConfig) -> bool:
    """Whether keys or values begin with a schema registry's envelope."""
    return isinstance(settings, ProtobufFormat) and settings.wire_format == "confluent"


def schema_registry_name(config: TopicConfig, section: SchemaRegistrySection | None) -> str | None:
    """The name of the schema registry that the topic needs; None where it needs none."""
    if section is None or not any(map(has_envelopes, (config.key, config.value))):
        return None
    return schema_registry_settings(section).name
