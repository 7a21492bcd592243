"""Schemas from where they are kept: descriptor sets, `.proto` files and a schema registry. Reads envelopes of values.

What knows a schema source belongs here: compiling, the schema registry's client, its ids and envelopes, and the schemas
that a topic's settings name. How a schema becomes columns, and bytes become rows, belongs to `schema_mapping`.
"""

from archiver.schemas.bloom_columns import bloom_columns
from archiver.schemas.decode import decode_values, has_errors
from archiver.schemas.format_settings import SchemaPlace, envelope_reader, mapping_options, source_schema
from archiver.schemas.protobuf.schema_files import compile_proto, read_descriptor_set
from archiver.schemas.registry.envelope import BodyChoice, EnvelopeReader
from archiver.schemas.topic_schemas import SchemaReader, TopicSchemas
from schema_mapping.protobuf.descriptors import SourceSchema

__all__ = [
    "BodyChoice",
    "EnvelopeReader",
    "SchemaPlace",
    "SchemaReader",
    "SourceSchema",
    "TopicSchemas",
    "bloom_columns",
    "compile_proto",
    "decode_values",
    "envelope_reader",
    "has_errors",
    "mapping_options",
    "read_descriptor_set",
    "source_schema",
]
