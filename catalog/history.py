"""The schema versions of a topic and what each changed, as the registry recorded it (docs/schema-evolution.md).

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from psycopg.types.json import Json

from catalog.model import TopicRow
from catalog.postgres import Connection
from catalog.versions import VersionRecord
from schema_mapping.evolution import Change


def load(connection: Connection, topic: TopicRow) -> tuple[VersionRecord, ...]:
    """All versions of the topic, ascending."""
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
    """Keep what a version that was just stored has changed."""
    connection.execute(
        "UPDATE schema_versions SET changes = %s WHERE topic_id = %s AND version = %s",
        (Json([change.to_json() for change in changes]), topic.id, version),
    )


def restore(connection: Connection, topic: TopicRow, known: VersionRecord) -> None:
    """Keep what is known from elsewhere of a version that was just stored."""
    record(connection, topic, known.version, known.changes)
    connection.execute(
        "UPDATE schema_versions SET created_at = %s WHERE topic_id = %s AND version = %s",
        (known.created, topic.id, known.version),
    )
