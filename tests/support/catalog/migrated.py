"""Databases with the first migrations only."""

from __future__ import annotations

import importlib.resources

import psycopg

MIGRATIONS = sorted(
    (file.name.removesuffix(".sql"), file.read_text("utf-8"))
    for file in importlib.resources.files("catalog.registry.migrations").iterdir()
    if file.name.endswith(".sql")
)
"""The name and the statements of each migration, in order."""


def migrate_up_to(dsn: str, count: int) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL)")
        for name, statements in MIGRATIONS[:count]:
            connection.execute(statements.encode())
            connection.execute("INSERT INTO migrations VALUES (%s, %s)", (int(name[:4]), name))
