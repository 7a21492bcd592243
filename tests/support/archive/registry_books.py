"""Compares a registry's offsets with the ranges of `files`."""

from __future__ import annotations

from pathlib import Path

from archiver.config import load_config
from catalog.account.comparison import compare
from catalog.errors import RegistryNotMigrated
from catalog.registry import RegistryReader


def differences_of_books(config: Path, topic: str) -> list[str]:
    try:
        reader = RegistryReader(load_config(config).registry.dsn)
    except RegistryNotMigrated:
        return []
    with reader as registry:
        rows = [row for row in registry.topics.every() if row.topic == topic]
        books = [registry.ranges.both_books(row) for row in rows]
    return [
        f"partition {difference.offsets.partition} {difference.offsets}: {difference.text}"
        for account, ranges in books
        for difference in compare(account, ranges)
    ]
