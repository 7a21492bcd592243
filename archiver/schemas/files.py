"""Schemas from descriptor-set files, as `protoc --include_imports --descriptor_set_out` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from archiver.errors import ConfigError
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import SourceSchema
from schema_mapping.protobuf.type_graph import source_graph


def read_descriptor_set(path: Path, message: str, extensions: Sequence[str] = ()) -> SourceSchema:
    """The schema of `message` from a descriptor-set file, with the extensions that become columns.

    Raises ConfigError when the file is missing or no descriptor set, an import isn't in it, or the message or an
    extension isn't there.
    """
    source = SourceSchema(descriptor_set=read_schema_file(path), message=message, extensions=tuple(extensions))
    return checked(source, path)


def read_schema_file(path: Path) -> bytes:
    """The bytes of a schema file; ConfigError when it can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError("there is no such schema file", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"the schema file cannot be read: {error.strerror}", file=str(path)) from error


def checked(source: SourceSchema, path: Path) -> SourceSchema:
    """The same schema, known to hold its message and all it needs; else ConfigError naming the file."""
    try:
        source_graph(source)
    except DescriptorError as error:
        context = {name: value for name, value in error.context.items() if name != "file"}
        inner = {"schema_file": error.context["file"]} if "file" in error.context else {}
        raise ConfigError(error.message, file=str(path), **inner, **context) from error
    return source
