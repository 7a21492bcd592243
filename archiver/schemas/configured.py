"""From a topic's format settings to its schema and the limits of its mapping."""

from __future__ import annotations

from archiver.config.model import FormatConfig, ProtobufFormat, RawFormat
from archiver.schemas.files import read_descriptor_set
from archiver.schemas.protoc import compile_proto
from schema_mapping.descriptors import SourceSchema
from schema_mapping.options import MappingOptions


def source_schema(settings: FormatConfig) -> SourceSchema | None:
    """The schema that a key's or value's settings name; None for raw. Raises ConfigError when it can't be had."""
    if isinstance(settings, RawFormat):
        return None
    if settings.descriptors is not None:
        return read_descriptor_set(settings.descriptors, settings.message)
    assert settings.proto is not None
    return compile_proto(settings.proto, settings.message, settings.imports)


def mapping_options(key: FormatConfig, value: FormatConfig) -> MappingOptions:
    """The limits of a table: where key and value differ, the wider ones."""
    settings = [each for each in (key, value) if isinstance(each, ProtobufFormat)]
    if not settings:
        return MappingOptions()
    return MappingOptions(
        max_depth=max(each.max_depth for each in settings), max_columns=max(each.max_columns for each in settings)
    )
