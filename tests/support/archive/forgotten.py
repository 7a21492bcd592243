"""A person to forget, and searches for her name."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import zstandard

from archiver.config import load_config
from archiver.storage.objects import ObjectStore
from catalog.value_terms import term_of
from tests.support.archive.regrouping import Workshop

NAME = b"jane-doe-7c1f"
"""The name to forget. No other record has it, and it is too long to occur by chance."""


def objects_with_her(config: Path) -> list[str]:
    """Finds plain, base64, hexadecimal and compressed names."""
    settings = load_config(config)
    objects = ObjectStore.of(settings.catalog)
    with Workshop.of(config) as shop:
        places = [shop.table.location, settings.archive.journal or ""]
    return [
        file.path
        for position in places
        for part in objects.walk(position)
        for file in part
        if _has_her(file.path, objects.read(file.path))
    ]


def _has_her(path: str, data: bytes) -> bool:
    if NAME in data or NAME[:12] in data or b64encode(NAME)[:12] in data or NAME.hex().encode() in data:
        return True
    return path.endswith(".parquet") and (
        NAME.decode() in str(pq.read_table(io.BytesIO(data)).to_pylist()) or _sets_have_her(data)
    )


def _sets_have_her(data: bytes) -> bool:
    position = (pq.read_metadata(io.BytesIO(data)).metadata or {}).get(b"archiver.index")
    if position is None:
        return False
    start, size, _ = position.split(b":")
    return NAME in zstandard.ZstdDecompressor().decompress(data[int(start) : int(start) + int(size)])


def files_with_her_in_sets(config: Path) -> int:
    objects = ObjectStore.of(load_config(config).catalog)
    with Workshop.of(config) as shop:
        files = [file.path for file in objects.list(shop.table.location) if file.path.endswith(".parquet")]
    return sum(_sets_have_her(objects.read(path)) for path in files)


def hashes_of_her(config: Path) -> int:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute("SELECT terms FROM file_values").fetchall()
    hashes = {term_of(identifier, NAME) for identifier in range(1, 1_000)}
    return sum(not hashes.isdisjoint(terms) for (terms,) in rows)


def registry_with_her(config: Path) -> bool:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        texts = [str(row) for (name,) in tables for row in connection.execute(f'SELECT * FROM "{name}"').fetchall()]
    return any(name in text for text in texts for name in (NAME.decode(), "amFuZS1kb2Ut", NAME.hex()))


def values_of_files(config: Path) -> dict[str, tuple[list[int], list[int]]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute(
            "SELECT path, columns, terms FROM file_values JOIN files USING (topic_id, path)"
            " WHERE state = 'committed' AND id = file_id"
        )
        return {path: (columns, terms) for path, columns, terms in rows}


def acts(config: Path, topic: str, kind: str) -> list[dict[str, Any]]:
    settings = load_config(config)
    objects = ObjectStore.of(settings.catalog)
    parts = objects.walk(settings.archive.journal or "")
    result = [json.loads(objects.read(file.path)) for part in parts for file in part if "/entry-" in file.path]
    return [value["details"] for value in result if value["topic"] == topic and value["act_id"].startswith(f"{kind}-")]
