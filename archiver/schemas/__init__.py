"""Where schemas come from: descriptor sets and `.proto` files, as values that `schema_mapping` understands."""

from archiver.schemas.configured import mapping_options, source_schema
from archiver.schemas.files import read_descriptor_set
from archiver.schemas.protoc import compile_proto
from schema_mapping.descriptors import SourceSchema

__all__ = ["SourceSchema", "compile_proto", "mapping_options", "read_descriptor_set", "source_schema"]
