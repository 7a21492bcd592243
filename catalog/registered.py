"""What a schema registry has said of a topic's schemas, kept so that archiving goes on while it is down.

Ids and subjects mean something only to the registry that gave them, so its name is part of the key. Functions take a
connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from catalog.model import TopicRow
from catalog.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedSchemas:
    """Serialized schemas by id, and the id of each subject's latest schema when it was last asked."""

    schemas: Mapping[int, bytes] = field(default_factory=dict)
    subjects: Mapping[str, int] = field(default_factory=dict)


def load(connection: Connection, topic: TopicRow, registry: str) -> RememberedSchemas:
    """All that is remembered of a registry for a topic."""
    where = (topic.id, registry)
    schemas = connection.execute(
        "SELECT schema_id, files FROM registered_schemas WHERE topic_id = %s AND registry = %s", where
    ).fetchall()
    subjects = connection.execute(
        "SELECT subject, schema_id FROM registered_subjects WHERE topic_id = %s AND registry = %s", where
    ).fetchall()
    return RememberedSchemas(schemas={number: bytes(files) for number, files in schemas}, subjects=dict(subjects))


def remember(connection: Connection, topic: TopicRow, registry: str, news: RememberedSchemas) -> None:
    """Keep what is new: a schema never changes under its id, a subject's latest does."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO registered_schemas (topic_id, registry, schema_id, files) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [(topic.id, registry, schema_id, files) for schema_id, files in sorted(news.schemas.items())],
        )
        cursor.executemany(
            "INSERT INTO registered_subjects (topic_id, registry, subject, schema_id) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (topic_id, registry, subject) DO UPDATE SET schema_id = excluded.schema_id, asked_at = now()",
            [(topic.id, registry, subject, schema_id) for subject, schema_id in sorted(news.subjects.items())],
        )
