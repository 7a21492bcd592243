"""Read a topic's schemas from files or the schema registry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from archiver.config.formats import FormatSection
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import ConfigError, SchemaRegistryError
from archiver.schemas.format_settings import Part, SchemaPlace
from archiver.schemas.formats import FORMATS, Formats
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.schemas.registry.subjects import NOTHING, Subjects
from catalog.model import TopicRow
from catalog.registry.last_known import KnownSchemas
from schema_mapping.row import RowMapping
from schema_mapping.value_format import DeclaredSchema

if TYPE_CHECKING:
    from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """A topic's settings, schemas and envelope readers. `news` are the registry's.

    `schema_registry_down` is its error if the last known schemas were used.
    """

    config: TopicConfig
    key: DeclaredSchema | None
    value: DeclaredSchema | None
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    schema_registry: str | None = None
    news: KnownSchemas = NOTHING
    schema_registry_down: SchemaRegistryError | None = None
    subjects: Subjects | None = None
    formats: Formats = FORMATS

    @staticmethod
    def check(config: TopicConfig, section: SchemaRegistrySection | None = None) -> None:
        """Requests no schema registry. Raises ConfigError with the topic and the file."""
        for part, settings in _parts(config):
            if not settings.has_envelopes:
                _read(config, part, settings, None, FORMATS)
            elif section is not None:
                schema_registry_settings(section)
                for path in settings.files_beside_registry:
                    if not path.exists():
                        raise ConfigError("there is no such file or folder", topic=config.name, file=str(path))

    @classmethod
    def read_or_recall(
        cls,
        config: TopicConfig,
        section: SchemaRegistrySection | None,
        *,
        known: TopicRow | None,
        registry: Registry,
        formats: Formats = FORMATS,
    ) -> TopicSchemas:
        """Recall the last known schemas from `registry` (Postgres). Raises as `read`."""
        name = schema_registry_name(config, section)
        remembered = NOTHING
        if name is not None and known is not None:
            remembered = registry.last_known.recall_schemas(known, name)
        return cls.read(config, section, remembered, formats=formats)

    @classmethod
    def read(
        cls,
        config: TopicConfig,
        section: SchemaRegistrySection | None = None,
        remembered: KnownSchemas = NOTHING,
        *,
        formats: Formats = FORMATS,
    ) -> TopicSchemas:
        """Raises ConfigError with the topic and the file, and subclasses of SchemaRegistryError."""
        uses = section is not None and has_envelopes(config)
        subjects = Subjects(section, remembered) if section is not None and uses else None
        key, value = (_read(config, part, settings, subjects, formats) for part, settings in _parts(config))
        schemas = cls(
            config=config,
            key=key,
            value=value,
            schema_registry=None if subjects is None else subjects.registry_name,
            news=NOTHING if subjects is None else subjects.news,
            subjects=subjects,
            formats=formats,
        )
        readers = schemas._envelope_readers(key, value)
        down = None if subjects is None else subjects.down  # only now: readers of envelopes query the registry, too
        return replace(schemas, key_envelope=readers[0], value_envelope=readers[1], schema_registry_down=down)

    def readers_of(self, row: RowMapping) -> tuple[EnvelopeReader | None, EnvelopeReader | None]:
        """For records decoded with `row`. Raises ConfigError if the section names another format."""
        for (part, settings), schema in zip(_parts(self.config), (row.key_schema, row.value_schema), strict=True):
            if schema is not None and settings.format != schema.format:
                raise ConfigError(
                    f"the topic's {part}s are archived as {schema.format}, and its section names {settings.format}",
                    topic=self.config.name,
                )
        return self._envelope_readers(row.key_schema, row.value_schema)

    def _envelope_readers(
        self, key: DeclaredSchema | None, value: DeclaredSchema | None
    ) -> tuple[EnvelopeReader | None, EnvelopeReader | None]:
        readers = [
            self.formats.envelope_reader(
                settings, schema, SchemaPlace(topic=self.config.name, part=part, subjects=self.subjects)
            )
            for (part, settings), schema in zip(_parts(self.config), (key, value), strict=True)
        ]
        return readers[0], readers[1]


class SchemaReader(Protocol):
    """As `TopicSchemas.read_or_recall`."""

    def __call__(
        self, config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        """Raises ConfigError, and subclasses of SchemaRegistryError."""


def _parts(config: TopicConfig) -> tuple[tuple[Part, FormatSection], ...]:
    return ("key", config.key), ("value", config.value)


def _read(
    config: TopicConfig, part: Part, settings: FormatSection, subjects: Subjects | None, formats: Formats
) -> DeclaredSchema | None:
    try:
        return formats.source_schema(settings, SchemaPlace(topic=config.name, part=part, subjects=subjects))
    except ConfigError as error:
        raise ConfigError(error.message, topic=config.name, **error.context) from error


def has_envelopes(config: TopicConfig) -> bool:
    return config.key.has_envelopes or config.value.has_envelopes


def schema_registry_name(config: TopicConfig, section: SchemaRegistrySection | None) -> str | None:
    return schema_registry_settings(section).name if section is not None and has_envelopes(config) else None
