"""The formats of keys and values, by name. Imported at first use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from schema_mapping.errors import DescriptorError
from schema_mapping.value_format import ValueFormat, ValueMapping

UNNAMED: Final = "protobuf"
"""The format of a mapping whose JSON has no `format`."""

_OURS: Final[Mapping[str, tuple[str, str]]] = {
    UNNAMED: ("schema_mapping.protobuf.format", "PROTOBUF"),
    "avro": ("schema_mapping.avro.format", "AVRO"),
    "json": ("schema_mapping.json.format", "JSON"),
    "protobuf_messages": ("schema_mapping.protobuf.format", "PROTOBUF_MESSAGES"),
    "raw": ("schema_mapping.raw_mapping", "RAW"),
}
"""The formats of this package by name: the module that has each, and its name there."""

MODULES: Final = tuple(sorted({module for module, _ in _OURS.values()}))
"""The modules of the formats, for processes that import ahead what decodes."""

_REGISTERED: Final[dict[str, ValueFormat]] = {}
"""Of the process: unpickling a mapping has no caller that could pass formats."""


def register(format_: ValueFormat) -> None:
    """Register a format, in every process that unpickles its mappings.

    Idempotent. Raises ValueError if another format has the name.
    """
    registered = _ours(format_.name) or _REGISTERED.setdefault(format_.name, format_)
    if registered != format_:
        raise ValueError(f"another value format is called {format_.name!r}")


def format_called(name: str) -> ValueFormat:
    """Raises DescriptorError, with the known names."""
    registered = _ours(name) or _REGISTERED.get(name)
    if registered is None:
        raise DescriptorError(
            f"no value format is called {name!r} here: upgrade the archiver, or import what registers it",
            known=sorted({*_OURS, *_REGISTERED}),
        )
    return registered


def load_formats() -> None:
    """Call it before the first values."""
    for name in _OURS:
        format_called(name).load_encoder()


def _ours(name: str) -> ValueFormat | None:
    if name not in _OURS:
        return None
    module, attribute = _OURS[name]
    format_: ValueFormat = getattr(import_module(module), attribute)
    return format_


def mapping_from_json(data: Mapping[str, Any]) -> ValueMapping:
    """Raises DescriptorError for an unknown format."""
    return format_called(data.get("format", UNNAMED)).mapping(data)
