"""The last answers of catalog and schema registry, for outages (docs/troubleshooting.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from catalog.iceberg.last_known_table import LastKnownTable
from catalog.model import SchemaIdentity, TopicRow
from catalog.registry.postgres import Connection

_KEY = "table"
_NAME = "known"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchemas:
    """`subjects` have the latest at the last request."""

    schemas: Mapping[SchemaIdentity, bytes] = field(default_factory=dict)
    subjects: Mapping[str, SchemaIdentity] = field(default_factory=dict)


def remember_table(connection: Connection, topic: TopicRow, known: LastKnownTable) -> None:
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value)"
        " VALUES (%s, %s, %s, jsonb_build_object('metadata', %s::jsonb, 'vended', %s::boolean))"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET value = excluded.value, updated = now()"
        " WHERE metadata.value IS DISTINCT FROM excluded.value",
        (topic.id, _KEY, _NAME, known.metadata, known.vended),
    )


def recall_table(connection: Connection, topic: TopicRow) -> LastKnownTable | None:
    row = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, _NAME)
    ).fetchone()
    return None if row is None else LastKnownTable(metadata=json.dumps(row[0]["metadata"]), vended=row[0]["vended"])


def forget_table(connection: Connection, topic: TopicRow) -> None:
    connection.execute("DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, _NAME))


def remember_schemas(connection: Connection, topic: TopicRow, schema_registry: str, news: KnownSchemas) -> None:
    """The registry's name scopes ids and subjects. A schema never changes by id, a subject's latest does."""
    by_id, by_guid = [], []
    for (number, context), files in sorted(news.schemas.items(), key=str):
        if isinstance(number, UUID):
            by_guid.append((topic.id, schema_registry, number, files))
        else:
            by_id.append((topic.id, schema_registry, context, number, files))
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO registered_schemas (topic_id, registry, context, schema_id, files)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            by_id,
        )
        cursor.executemany(
            "INSERT INTO registered_guids (topic_id, registry, guid, files) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            by_guid,
        )
        cursor.executemany(
            "INSERT INTO registered_subjects (topic_id, registry, subject, schema_id, context)"
            " VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (topic_id, registry, subject)"
            " DO UPDATE SET schema_id = excluded.schema_id, context = excluded.context, asked_at = now()",
            [
                (topic.id, schema_registry, subject, latest.number, latest.context)
                for subject, latest in sorted(news.subjects.items())
            ],
        )


def recall_schemas(connection: Connection, topic: TopicRow, schema_registry: str) -> KnownSchemas:
    where = (topic.id, schema_registry)
    schemas = connection.execute(
        "SELECT schema_id, context, files FROM registered_schemas WHERE topic_id = %s AND registry = %s", where
    ).fetchall()
    guids = connection.execute(
        "SELECT guid, '', files FROM registered_guids WHERE topic_id = %s AND registry = %s", where
    ).fetchall()
    subjects = connection.execute(
        "SELECT subject, schema_id, context FROM registered_subjects WHERE topic_id = %s AND registry = %s", where
    ).fetchall()
    return KnownSchemas(
        schemas={SchemaIdentity(number, context): bytes(files) for number, context, files in (*schemas, *guids)},
        subjects={subject: SchemaIdentity(number, context) for subject, number, context in subjects},
    )
