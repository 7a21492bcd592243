"""The settings of JSON keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archiver.config.formats import JsonFormat
from archiver.errors import ConfigError
from archiver.schemas.format_settings import ProposedFile, SchemaInference, SchemaPlace
from archiver.schemas.json.body_choice import JsonBodies
from archiver.schemas.json.registered_schema import JSON_SCHEMAS, JsonSchemas
from archiver.schemas.registry.envelope import EnvelopeReader, RegistryEnvelopes
from archiver.schemas.schema_file import read_schema_text
from schema_mapping.errors import DescriptorError
from schema_mapping.json.schema import JsonSchema
from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, slots=True)
class JsonSettings:
    name: str = "json"
    suffixes: tuple[str, ...] = (".json",)
    kind: JsonSchemas = JSON_SCHEMAS
    registered_section: str = '{ format = "json", wire_format = "confluent" }'

    @property
    def inference(self) -> SchemaInference:
        from archiver.schemas.json.inference import infer_json_schema

        return infer_json_schema

    def source_schema(self, settings: JsonFormat, place: SchemaPlace) -> JsonSchema:
        """Raises ConfigError, and subclasses of SchemaRegistryError."""
        if settings.wire_format == "plain":
            return read_json_schema(settings.schema_files)
        assert place.subjects is not None
        return place.subjects.latest(_subject(settings, place), JSON_SCHEMAS).schema

    def envelope_reader(
        self, settings: JsonFormat, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        """None for values without envelopes."""
        if settings.wire_format == "plain":
            return None
        assert isinstance(schema, JsonSchema)
        assert place.subjects is not None
        ids = place.subjects.ids(_subject(settings, place), JSON_SCHEMAS)
        choice = JsonBodies(messages=schema.messages, registry=ids)
        return RegistryEnvelopes(choice=choice.with_schemas(place.subjects.schemas), header=place.header)

    def next_schema(self, file: ProposedFile, settings: JsonFormat | None) -> JsonSchema:
        """Raises ConfigError."""
        if not isinstance(file.today, JsonSchema | None):
            raise ConfigError(
                "the topic's values aren't JSON, so a JSON Schema can't be their next schema",
                topic=file.topic,
                format=file.today.format,
            )
        further = () if settings is None else settings.schema_files[1:]
        return read_json_schema((file.path, *further))


JSON_SETTINGS: Final = JsonSettings()


def read_json_schema(paths: tuple[Path, ...]) -> JsonSchema:
    """The first file refers to further ones by name. Raises ConfigError with the file."""
    texts = [read_schema_text(path) for path in paths]
    references = {path.name: text for path, text in zip(paths[1:], texts[1:], strict=True)}
    try:
        return JsonSchema.of(texts[0], references=references)
    except DescriptorError as error:
        raise ConfigError(error.message, file=str(paths[0]), **error.context) from error


def _subject(settings: JsonFormat, place: SchemaPlace) -> str:
    return f"{place.topic}-{place.part}" if settings.subject is None else settings.subject
