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
_FOUND: Final = """
SELECT path, columns, ARRAY(SELECT term FROM unnest(terms) AS term WHERE term = ANY(%(wanted)s::bigint[]))
FROM file_values WHERE topic_id = %(topic)s AND path = ANY(%(paths)s) AND columns && %(fields)s::integer[]
"""
"""Planned with its values (Postgres hashes an array that is constant), so not prepared."""


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
    """Return for files of `paths`, for each lookup, whether no row has the value.

    Leaves out files that aren't recorded, or with none of the columns.
    """
    fields, terms = columns_and_terms(lookups)
    pairs = list(zip(fields, terms, strict=True))
    wanted = {"topic": topic.id, "fields": sorted(set(fields)), "wanted": sorted(set(terms))}
    answers: dict[str, list[bool]] = {}
    for start in range(0, len(paths), _AT_ONCE):
        part = list(paths[start : start + _AT_ONCE])
        rows = connection.execute(_FOUND, {**wanted, "paths": part}, prepare=False)
        for path, columns, present in rows:
            known, has = frozenset(columns), frozenset(present)
            answers[path] = [field in known and term not in has for field, term in pairs]
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
