"""The settings of Avro keys and values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from archiver.config.formats import AvroFormat
from archiver.errors import ConfigError
from archiver.schemas.avro.registered_schema import AVRO_SCHEMAS, AvroSchemas
from archiver.schemas.avro.single_objects import SingleObjects, SubjectVersions
from archiver.schemas.avro.writer_choice import WriterChoice
from archiver.schemas.format_settings import ProposedFile, SchemaPlace
from archiver.schemas.registry.envelope import EnvelopeReader, RegistryEnvelopes
from archiver.schemas.schema_file import read_schema_text
from schema_mapping.avro.fingerprint import schema_fingerprint
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
        if not settings.has_envelopes:
            return read_schema_files(settings.schema_files, settings.older_schemas)
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
        if settings.wire_format == "single_object":
            return _single_objects(settings, schema, place)
        assert place.subjects is not None
        subject = _subject_of(settings, place)
        choice = WriterChoice(
            messages=schema.messages,
            fingerprints=tuple(map(writer_fingerprint, schema.writers)),
            registry=place.subjects.ids(subject, AVRO_SCHEMAS),
            subject=subject,
        )
        return RegistryEnvelopes(choice=choice.with_schemas(place.subjects.schemas), header=place.header)

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


def read_schema_files(paths: tuple[Path, ...], older: tuple[Path, ...] = ()) -> AvroSchema:
    """Further files define types of the first one and of `older`. Raises ConfigError with the file."""
    references = tuple(map(read_schema_text, paths[1:]))
    writers: list[str] = []
    for path in (paths[0], *older):
        try:
            writers += AvroSchema.of(read_schema_text(path), references=references).writers
        except DescriptorError as error:
            raise ConfigError(error.message, file=str(path), **error.context) from error
    return AvroSchema(writers=distinct(tuple(writers)))


def _single_objects(settings: AvroFormat, schema: AvroSchema, place: SchemaPlace) -> SingleObjects:
    versions = None
    if place.subjects is not None and settings.has_envelopes:
        subject = _subject_of(settings, place)
        versions = SubjectVersions(registry=place.subjects.ids(subject, AVRO_SCHEMAS), subject=subject)
    fingerprints = tuple(map(schema_fingerprint, schema.writers))
    return SingleObjects(messages=schema.messages, fingerprints=fingerprints, versions=versions)


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
