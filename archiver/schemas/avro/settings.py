"""The settings of Avro keys and values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from archiver.config.formats import AvroFormat
from archiver.errors import ConfigError
from archiver.schemas.avro.registered_schema import AVRO_SCHEMAS, AvroSchemas
from archiver.schemas.avro.writer_choice import WriterChoice
from archiver.schemas.format_settings import ProposedFile, SchemaPlace
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.schema_file import read_schema_text
from schema_mapping.avro.schema import MOST_WRITERS, AvroSchema, distinct, writer_fingerprint
from schema_mapping.errors import DescriptorError
from schema_mapping.value_format import DeclaredSchema

AVSC: Final = ".avsc"


@dataclass(frozen=True, slots=True)
class AvroSettings:
    name: str = "avro"
    suffixes: tuple[str, ...] = (AVSC,)
    kind: AvroSchemas = AVRO_SCHEMAS
    registered_section: str = '{ format = "avro", wire_format = "confluent" }'
    inference: None = None

    def source_schema(self, settings: AvroFormat, place: SchemaPlace) -> AvroSchema:
        """A file's schema, or all of a subject, the latest first.

        Raises ConfigError, and subclasses of SchemaRegistryError.
        """
        if settings.wire_format == "plain":
            return read_schema_files(settings.schema_files)
        assert place.subjects is not None
        schemas = place.subjects.versions(_subject_of(settings, place), AVRO_SCHEMAS, MOST_WRITERS)
        return AvroSchema(writers=distinct(tuple(schema.text for schema in schemas)))

    def envelope_reader(
        self, settings: AvroFormat, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        """None for values without envelopes."""
        if settings.wire_format == "plain":
            return None
        assert isinstance(schema, AvroSchema)
        assert place.subjects is not None
        subject = _subject_of(settings, place)
        choice = WriterChoice(
            messages=schema.messages,
            fingerprints=tuple(map(writer_fingerprint, schema.writers)),
            registry=place.subjects.ids(subject, AVRO_SCHEMAS),
            subject=subject,
        )
        return EnvelopeReader(choice=choice.with_schemas(place.subjects.schemas), header=place.header)

    def next_schema(self, file: ProposedFile, settings: AvroFormat | None) -> AvroSchema:
        """The file's schema becomes the newest writer. Raises ConfigError."""
        today = file.today
        if not isinstance(today, AvroSchema | None):
            raise ConfigError(
                "the topic's values aren't Avro, so an .avsc file can't be their next schema",
                topic=file.topic,
                format=today.format,
            )
        references = () if settings is None else settings.schema_files[1:]
        proposed = read_schema_files((file.path, *references))
        if today is None:
            return proposed
        return replace(today, writers=distinct((*proposed.writers, *today.writers)))


AVRO_SETTINGS: Final = AvroSettings()


def read_schema_files(paths: tuple[Path, ...]) -> AvroSchema:
    """Further files define types of the first one. Raises ConfigError with the file."""
    texts = tuple(map(read_schema_text, paths))
    try:
        return AvroSchema.of(texts[0], references=texts[1:])
    except DescriptorError as error:
        raise ConfigError(error.message, file=str(paths[0]), **error.context) from error


def _subject_of(settings: AvroFormat, place: SchemaPlace) -> str:
    if settings.subject is not None:
        return settings.subject
    match settings.subject_strategy:
        case "topic_name":
            return f"{place.topic}-{place.part}"
        case "record_name":
            return str(settings.message)
        case "topic_record_name":
            return f"{place.topic}-{settings.message}"
