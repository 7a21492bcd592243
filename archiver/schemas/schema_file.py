"""Read the schema files that a configuration names."""

from __future__ import annotations

from pathlib import Path

from archiver.errors import ConfigError


def read_schema_file(path: Path) -> bytes:
    """Raises ConfigError, with the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError("there is no such schema file", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"the schema file cannot be read: {error.strerror}", file=str(path)) from error


def read_schema_text(path: Path) -> str:
    """Raises ConfigError, with the file, also if it isn't UTF-8."""
    try:
        return read_schema_file(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"the schema file cannot be read: {error}", file=str(path)) from error
