"""Schemas from files and a schema registry, and envelopes of values."""

from archiver.schemas.bloom_columns import bloom_columns, known_schemas
from archiver.schemas.decode import decode_in_parts, decode_values, has_errors
from archiver.schemas.format_settings import FormatSettings, SchemaPlace, mapping_options
from archiver.schemas.formats import FORMATS, Formats
from archiver.schemas.registry.envelope import BodyChoice, EnvelopeReader
from archiver.schemas.topic_schemas import SchemaReader, TopicSchemas

__all__ = [
    "FORMATS",
    "BodyChoice",
    "EnvelopeReader",
    "FormatSettings",
    "Formats",
    "SchemaPlace",
    "SchemaReader",
    "TopicSchemas",
    "bloom_columns",
    "decode_in_parts",
    "decode_values",
    "has_errors",
    "known_schemas",
    "mapping_options",
]
