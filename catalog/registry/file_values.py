"""The values in files (`file_values`): advisory, so a missing row only makes searches slower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from catalog.model import TopicRow
from catalog.registry.postgres import Connection
from catalog.value_terms import Lookup, ValueTerms, columns_and_terms

_AT_ONCE: Final = 10_000
"""Paths of a query."""

_NOTE: Final = """
INSERT INTO file_values (file_id, topic_id, path, columns, terms)
SELECT min(id), topic_id, path, %(columns)s, %(terms)s FROM files
WHERE topic_id = %(topic)s AND path = %(path)s AND state IN ('uploaded', 'committed') GROUP BY topic_id, path
ON CONFLICT DO NOTHING
"""
_ABSENT: Final = """
SELECT path, ARRAY(
    SELECT field = ANY(columns) AND NOT term = ANY(terms)
    FROM unnest(%(fields)s::integer[], %(wanted)s::bigint[]) WITH ORDINALITY AS lookup(field, term, place)
    ORDER BY place)
FROM file_values WHERE topic_id = %(topic)s AND path = ANY(%(paths)s)
"""


def note(connection: Connection, topic: TopicRow, files: Mapping[str, ValueTerms]) -> None:
    """Record the values of files, by path. Files that the registry doesn't know are left out."""
    with connection.cursor() as cursor:
        cursor.executemany(
            _NOTE,
            [
                {"topic": topic.id, "path": path, "columns": list(values.columns), "terms": list(values.terms)}
                for path, values in files.items()
            ],
        )


def absent(
    connection: Connection, topic: TopicRow, paths: Sequence[str], lookups: Sequence[Lookup]
) -> dict[str, list[bool]]:
    """Return for the recorded files of `paths`, for each lookup, whether no row has the value."""
    fields, terms = columns_and_terms(lookups)
    answers: dict[str, list[bool]] = {}
    for start in range(0, len(paths), _AT_ONCE):
        part = list(paths[start : start + _AT_ONCE])
        rows = connection.execute(_ABSENT, {"topic": topic.id, "paths": part, "fields": fields, "wanted": terms})
        answers.update(dict(rows.fetchall()))
    return answers


def missing(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> list[str]:
    """Return the committed files of `paths` without recorded values."""
    rows = connection.execute(
        "SELECT DISTINCT path FROM files WHERE topic_id = %s AND path = ANY(%s) AND state = 'committed'"
        " AND NOT EXISTS (SELECT FROM file_values AS known WHERE known.topic_id = files.topic_id"
        " AND known.path = files.path) ORDER BY path",
        (topic.id, list(paths)),
    )
    return [path for (path,) in rows]
