"""Where schemas come from: descriptor sets, `.proto` files and a schema registry, as values for `schema_mapping`."""

from archiver.schemas.configured import SchemaPlace, envelope_reader, mapping_options, source_schema
from archiver.schemas.envelope import EnvelopeReader
from archiver.schemas.files import read_descriptor_set
from archiver.schemas.protoc import compile_proto
from schema_mapping.protobuf.descriptors import SourceSchema

__all__ = [
    "EnvelopeReader",
    "SchemaPlace",
    "SourceSchema",
    "compile_proto",
    "envelope_reader",
    "mapping_options",
    "read_descriptor_set",
    "source_schema",
]
