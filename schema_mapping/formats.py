"""The known formats of keys and values, by name: Protobuf (two), raw bytes, and those that others register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.format import PROTOBUF, PROTOBUF_MESSAGES
from schema_mapping.raw_mapping import RawFormat
from schema_mapping.value_format import ValueFormat, ValueMapping

UNNAMED: Final = PROTOBUF.name
"""The format of a mapping whose JSON has no `format`."""

_FORMATS: Final[dict[str, ValueFormat]] = {each.name: each for each in (PROTOBUF, PROTOBUF_MESSAGES, RawFormat())}


def register(format_: ValueFormat) -> None:
    """Registers a format in this process.

    A process that unpickles the format's mappings must register it, too: call this in the format's module. Registering
    an equal format again does nothing. Raises ValueError if another format has the name.
    """
    if _FORMATS.setdefault(format_.name, format_) != format_:
        raise ValueError(f"another value format is called {format_.name!r}")


def format_called(name: str) -> ValueFormat:
    """The format with this name. Raises DescriptorError, which lists the known names, if there is none."""
    try:
        return _FORMATS[name]
    except KeyError:
        raise DescriptorError(
            f"no value format is called {name!r} here: upgrade the archiver, or import what registers it",
            known=sorted(_FORMATS),
        ) from None


def mapping_from_json(data: Mapping[str, Any]) -> ValueMapping:
    """Reads a mapping back from its `to_json`. Raises DescriptorError if its format isn't known."""
    return format_called(data.get("format", UNNAMED)).mapping(data)
