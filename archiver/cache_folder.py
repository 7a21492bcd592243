"""The cache folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CACHE_NAME: Final = "kafka-iceberg-archiver"


def cache_folder() -> Path:
    """It may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / CACHE_NAME
