"""Evidence files, written atomically."""

from __future__ import annotations

import os
from pathlib import Path

from archiver.errors import ConfigError


def check_place(path: Path, what: str) -> None:
    """Raises ConfigError if a file can't be written there."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(
            f"The {what} can't be written there: name a file in a folder that this user may write to", file=str(path)
        )


def put_document(path: Path, text: str, what: str) -> None:
    """Replace a file atomically. Raises ConfigError."""
    fresh = path.with_name(f"{path.name}.tmp")
    try:
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"The {what} can't be written", file=str(path), cause=str(error)) from error
