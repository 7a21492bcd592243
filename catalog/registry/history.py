"""A topic's schema versions and changes, from the registry or a journal (docs/schema-evolution.md).

The newest journaled version is in `metadata` under `journal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from psycopg.types.json import Json, Jsonb

from catalog.model import TopicRow, VersionRecord
from catalog.registry.postgres import Connection
from schema_mapping.columns.evolution import Change

_JOURNAL = "journal"


def load(connection: Connection, topic: TopicRow) -> tuple[VersionRecord, ...]:
    rows = connection.execute(
        "SELECT version, created_at, fingerprint, changes FROM schema_versions WHERE topic_id = %s ORDER BY version",
        (topic.id,),
    )
    return tuple(
        VersionRecord(
            version=version,
            created=created.astimezone(UTC),
            fingerprint=fingerprint,
            changes=tuple(Change.from_json(change) for change in changes),
        )
        for version, created, fingerprint, changes in rows
    )


def record(connection: Connection, topic: TopicRow, version: int, changes: Sequence[Change]) -> None:
    connection.execute(
        "UPDATE schema_versions SET changes = %s WHERE topic_id = %s AND version = %s",
        (Json([change.to_json() for change in changes]), topic.id, version),
    )


def restore(connection: Connection, topic: TopicRow, known: VersionRecord) -> None:
    record(connection, topic, known.version, known.changes)
    connection.execute(
        "UPDATE schema_versions SET created_at = %s WHERE topic_id = %s AND version = %s",
        (known.created, topic.id, known.version),
    )


def journaled(connection: Connection, topic: TopicRow, journal: str) -> int:
    row = connection.execute(
        "SELECT value::integer FROM metadata WHERE topic_id = %s AND key = %s AND name = %s",
        (topic.id, _JOURNAL, journal),
    ).fetchone()
    return int(row[0]) if row else 0


def note_journaled(connection: Connection, topic: TopicRow, journal: str, version: int) -> None:
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET value = excluded.value, updated = now()",
        (topic.id, _JOURNAL, journal, Jsonb(version)),
    )
