"""A topic's settings with the schemas that they name."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import ConfigError
from archiver.schemas.configured import SchemaPlace, envelope_reader, source_schema
from archiver.schemas.envelope import EnvelopeReader
from schema_mapping.descriptors import SourceSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """A topic's settings with the schemas they name, read, and how envelopes before its messages are."""

    config: TopicConfig
    key: SourceSchema | None
    value: SourceSchema | None
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None

    @classmethod
    def read(cls, config: TopicConfig, registry: SchemaRegistrySection | None = None) -> TopicSchemas:
        """Read the schemas. Raises ConfigError, naming topic and file, and the leaves of SchemaRegistryError."""
        try:
            key = source_schema(config.key, SchemaPlace(topic=config.name, part="key", registry=registry))
            value = source_schema(config.value, SchemaPlace(topic=config.name, part="value", registry=registry))
        except ConfigError as error:
            raise ConfigError(error.message, topic=config.name, **error.context) from error
        return cls(
            config=config,
            key=key,
            value=value,
            key_envelope=envelope_reader(config.key, key, registry),
            value_envelope=envelope_reader(config.value, value, registry),
        )
