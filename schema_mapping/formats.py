"""The known formats of keys and values, by name: Protobuf (two), raw bytes, and those that others register.

Formats of this package are imported when the first one asks for them: topics without schemas need no Protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schema_mapping.errors import DescriptorError
from schema_mapping.raw_mapping import RawFormat
from schema_mapping.value_format import ValueFormat, ValueMapping

UNNAMED: Final = "protobuf"
"""The format of a mapping whose JSON has no `format`."""

_OURS: Final = (UNNAMED, "protobuf_messages", "raw")

_RAW: Final = RawFormat()
_REGISTERED: Final[dict[str, ValueFormat]] = {}


def register(format_: ValueFormat) -> None:
    """Registers a format in this process.

    A process that unpickles the format's mappings must register it, too: call this in the format's module. Registering
    an equal format again does nothing. Raises ValueError if another format has the name.
    """
    found = _ours(format_.name) or _REGISTERED.setdefault(format_.name, format_)
    if found != format_:
        raise ValueError(f"another value format is called {format_.name!r}")


def format_called(name: str) -> ValueFormat:
    """The format with this name. Raises DescriptorError, which lists the known names, if there is none."""
    found = _ours(name) or _REGISTERED.get(name)
    if found is None:
        raise DescriptorError(
            f"no value format is called {name!r} here: upgrade the archiver, or import what registers it",
            known=sorted({*_OURS, *_REGISTERED}),
        )
    return found


def load_formats() -> None:
    """Load the formats of this package with what encodes them, so that the first values don't wait for it."""
    from schema_mapping.protobuf.message_mapping import load_encoder

    for name in _OURS:
        _ours(name)
    load_encoder()


def _ours(name: str) -> ValueFormat | None:
    match name:
        case "protobuf":
            from schema_mapping.protobuf.format import PROTOBUF

            return PROTOBUF
        case "protobuf_messages":
            from schema_mapping.protobuf.format import PROTOBUF_MESSAGES

            return PROTOBUF_MESSAGES
        case "raw":
            return _RAW
    return None


def mapping_from_json(data: Mapping[str, Any]) -> ValueMapping:
    """Reads a mapping back from its `to_json`. Raises DescriptorError if its format isn't known."""
    return format_called(data.get("format", UNNAMED)).mapping(data)
