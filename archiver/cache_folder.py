"""The cache folder, for jars and archives of Java's classes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_NAME: Final = "kafka-iceberg-archiver"


def cache_folder() -> Path:
    """Return the archiver's folder in `$XDG_CACHE_HOME`, else in `~/.cache`. It may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / CACHE_NAME
