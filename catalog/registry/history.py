"""The schema versions of a topic: what each changed, and which of them a journal has (docs/schema-evolution.md).

The newest version that a journal has is a row of the registry's `metadata` under the key `journal`, by the place of the
journal. Functions take a connection inside a transaction.
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
    """All schema versions of the topic, ascending."""
    found = connection.execute(
        "SELECT version, created_at, fingerprint, changes FROM schema_versions WHERE topic_id = %s ORDER BY version",
        (topic.id,),
    )
    return tuple(
        VersionRecord(
            version=version,
            created=created.astimezone(UTC),
            fingerprint=fingerprint,
            changes=tuple(Change.from_json(each) for each in changes),
        )
        for version, created, fingerprint, changes in found
    )


def record(connection: Connection, topic: TopicRow, version: int, changes: Sequence[Change]) -> None:
    """Keep the changes of a schema version that was just stored."""
    connection.execute(
        "UPDATE schema_versions SET changes = %s WHERE topic_id = %s AND version = %s",
        (Json([change.to_json() for change in changes]), topic.id, version),
    )


def restore(connection: Connection, topic: TopicRow, known: VersionRecord) -> None:
    """Keep the changes and the creation time of a schema version that was just restored."""
    record(connection, topic, known.version, known.changes)
    connection.execute(
        "UPDATE schema_versions SET created_at = %s WHERE topic_id = %s AND version = %s",
        (known.created, topic.id, known.version),
    )


def journaled(connection: Connection, topic: TopicRow, journal: str) -> int:
    """The newest schema version that the journal has. 0 where it has none."""
    found = connection.execute(
        "SELECT value::integer FROM metadata WHERE topic_id = %s AND key = %s AND name = %s",
        (topic.id, _JOURNAL, journal),
    ).fetchone()
    return int(found[0]) if found else 0


def note_journaled(connection: Connection, topic: TopicRow, journal: str, version: int) -> None:
    """Record that the journal has all schema versions up to this one."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET value = excluded.value, updated = now()",
        (topic.id, _JOURNAL, journal, Jsonb(version)),
    )
