"""Coverage by term runs that the new files of a rewrite inherit from their old files (docs/adr/0112)."""

from __future__ import annotations

import logging
from typing import Final

import psycopg

from catalog.model import TopicRow
from catalog.ranges.rewrite import Rewrite
from catalog.registry.postgres import Connection

_LOG: Final = logging.getLogger(__name__)

_COPIES: Final = frozenset(("compact", "erase", "expire"))
"""Rewrites that change no value: they only put rows together, or leave rows out."""
_INHERITED: Final = """
WITH covered AS (
    SELECT run_id, column_id, mapping, file.path FROM term_runs AS run JOIN term_run_files AS file ON run_id = id
    WHERE topic_id = %(topic)s AND state = 'current' AND file.path = ANY(%(old)s)
), whole AS (
    SELECT column_id, mapping FROM covered GROUP BY 1, 2 HAVING count(DISTINCT path) = %(count)s
)
INSERT INTO term_run_files (run_id, path)
SELECT DISTINCT run_id, fresh FROM covered JOIN whole USING (column_id, mapping), unnest(%(new)s::text[]) AS fresh
ON CONFLICT DO NOTHING
"""


def inherit(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Let the new files of a compaction or removal be covered as their old files are, if these all are, by one mapping.

    Postings are offsets, and such rewrites change neither values nor offsets. Call it under the topic's lock. An error
    only leaves the files uncovered.
    """
    if rewrite.reason not in _COPIES:
        return
    try:
        with connection.transaction():
            for group in rewrite.groups:
                values = {"topic": topic.id, "old": list(group.paths), "new": list(group.new_paths)}
                connection.execute(_INHERITED, {**values, "count": len(group.paths)})
    except psycopg.Error as error:
        _LOG.warning("%s: new files are not covered by the index until its next build: %s", topic.topic, error)
