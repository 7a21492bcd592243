"""Where archiving of a topic's partitions begins, remembered when it is first decided (docs/concepts.md, step 1).

"latest" or a time means another offset at each look; nothing is staged until records come, so the decision itself is
kept. Rows of the registry's `metadata` under the key `start`. Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.postgres import Connection

_KEY = "start"


def remember(connection: Connection, topic: TopicRow, starts: Mapping[int, int]) -> dict[int, int]:
    """Keep the starts of partitions that have none yet; gives those of all partitions, as first remembered."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [(topic.id, _KEY, str(partition), Jsonb(offset)) for partition, offset in sorted(starts.items())],
        )
    found = connection.execute(
        "SELECT name::integer, value::bigint FROM metadata WHERE topic_id = %s AND key = %s AND NOT deleted",
        (topic.id, _KEY),
    )
    return dict(found.fetchall())
