"""Topics' schemas, for several checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from archiver.config import Config, TopicConfig
from archiver.errors import SchemaRegistryError
from archiver.schemas import mapping_options
from archiver.schemas.registry.http import RegistryHttp
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.schemas.topic_schemas import TopicSchemas, schema_registry_name
from schema_mapping import LedgerState, assign
from schema_mapping.errors import ContextError
from schema_mapping.field_ids import Assignment


def read_schemas(
    config: Config, topics: Sequence[TopicConfig], failed: dict[str, ContextError] | None = None
) -> Iterator[tuple[TopicConfig, TopicSchemas, Assignment]]:
    """`failed` gets errors of unreadable schemas.

    A schema registry that doesn't answer gets one request, and isn't in `failed`.
    """
    answers: bool | None = None
    for topic in topics:
        try:
            if schema_registry_name(topic, config.schema_registry) is not None:
                answers = _answers(config) if answers is None else answers
                if not answers:
                    continue
            schemas = TopicSchemas.read(topic, config.schema_registry)
            assigned = assign(LedgerState(), key=schemas.key, value=schemas.value, options=mapping_options(topic))
        except ContextError as error:
            if failed is not None:
                failed[topic.name] = error
            continue
        yield topic, schemas, assigned


def _answers(config: Config) -> bool:
    assert config.schema_registry is not None
    settings = replace(schema_registry_settings(config.schema_registry), attempts=1)
    try:
        return RegistryHttp(settings).get_list("/schemas/types") is not None
    except SchemaRegistryError:
        return False
