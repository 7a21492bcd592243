"""Schemas from where they are kept: files and a schema registry. Reads envelopes of values.

What all formats share belongs here, a schema registry's client in `registry`, and what one format needs in its own
package. How a schema becomes columns, and bytes become rows, belongs to `schema_mapping`.
"""

from archiver.schemas.bloom_columns import bloom_columns
from archiver.schemas.decode import decode_values, has_errors
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
    "decode_values",
    "has_errors",
    "mapping_options",
]
