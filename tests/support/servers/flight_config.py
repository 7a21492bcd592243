"""Configurations of topics that Flight clients fill."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from tests.support.servers.stack import Stack, to_toml

PARTITIONS: Final = 3
WAITS: Final = {"min_file_size": "512MiB", "max_lag": "1h"}
"""Settings with which rows wait in the log."""


def config_of(stack: Stack, topic: str, **settings: Any) -> Path:
    """By default, files are written as soon as there are rows."""
    settings = {"source": "flight", "partitions": PARTITIONS, "min_file_size": "0B", **settings}
    path = stack.config({topic: settings}, flight={"wal": "wal"})
    document = tomllib.loads(path.read_text())
    del document["kafka"]
    path.write_text(to_toml(document))
    return path
