"""How far a journal has a topic's schema versions, so that it need not be asked (docs/operations.md).

Rows of the registry's `metadata` under the key `journal`, by the journal's place. Functions take a connection inside a
transaction.
"""

from __future__ import annotations

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.postgres import Connection

_KEY = "journal"


def journaled(connection: Connection, topic: TopicRow, journal: str) -> int:
    """The newest schema version that the journal has; 0 where it has none."""
    found = connection.execute(
        "SELECT value::integer FROM metadata WHERE topic_id = %s AND key = %s AND name = %s",
        (topic.id, _KEY, journal),
    ).fetchone()
    return int(found[0]) if found else 0


def note(connection: Connection, topic: TopicRow, journal: str, version: int) -> None:
    """Note that the journal has all schema versions up to this one."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET value = excluded.value, updated = now()",
        (topic.id, _KEY, journal, Jsonb(version)),
    )
