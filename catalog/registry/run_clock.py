"""The time by which runs of the index and gone offsets are compared."""

from __future__ import annotations

from typing import Final

from catalog.model import TopicRow
from catalog.registry.postgres import Connection

_NOW: Final = """
SELECT greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                (SELECT max(begun_ms) FROM term_runs WHERE topic_id = %(topic)s),
                (SELECT max((value->>'begun_ms')::bigint) FROM metadata
                 WHERE topic_id = %(topic)s AND key = 'rewriting'))
"""


def now_ms(connection: Connection, topic: TopicRow) -> int:
    """Return Postgres' time in ms since 1970, not before the topic's runs and claims of builds began.

    A server that took over may be seconds behind: offsets that it notes as gone may be in all these runs.
    """
    row = connection.execute(_NOW, {"topic": topic.id}).fetchone()
    assert row is not None
    return int(row[0])
