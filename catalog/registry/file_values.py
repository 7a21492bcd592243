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
_FEW: Final = 16
"""Up to this number, terms are searched in the list of each file. If there are more, each list is joined by hash."""

_FEW_FOUND: Final = """
SELECT path, columns, ARRAY(SELECT term FROM unnest(%(wanted)s::bigint[]) AS term WHERE term = ANY(terms))
FROM file_values WHERE topic_id = %(topic)s AND path = ANY(%(paths)s) AND columns && %(fields)s::integer[]
"""
_MANY_FOUND: Final = """
SELECT path, columns, ARRAY(SELECT term FROM unnest(terms) AS term WHERE term = ANY(%(wanted)s::bigint[]))
FROM file_values WHERE topic_id = %(topic)s AND path = ANY(%(paths)s) AND columns && %(fields)s::integer[]
"""
"""Not prepared: Postgres hashes an array only if it is constant in the plan."""


def note(connection: Connection, topic: TopicRow, files: Mapping[str, ValueTerms]) -> None:
    """Files that the registry doesn't know are left out."""
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
    """For each lookup, whether no row of a file has the value.

    Leaves out files that aren't recorded, or with none of the columns.
    """
    fields, terms = columns_and_terms(lookups)
    pairs = list(zip(fields, terms, strict=True))
    distinct = sorted(set(terms))
    values = {"topic": topic.id, "fields": sorted(set(fields)), "wanted": distinct}
    query = _FEW_FOUND if len(distinct) <= _FEW else _MANY_FOUND
    answers: dict[str, list[bool]] = {}
    for start in range(0, len(paths), _AT_ONCE):
        part = list(paths[start : start + _AT_ONCE])
        rows = connection.execute(query, {**values, "paths": part}, prepare=False)
        for path, columns, present in rows:
            listed, has = frozenset(columns), frozenset(present)
            answers[path] = [field in listed and term not in has for field, term in pairs]
    return answers


def missing(connection: Connection, topic: TopicRow, paths: Sequence[str]) -> list[str]:
    """The committed files of `paths` without recorded values."""
    rows = connection.execute(
        "SELECT DISTINCT path FROM files WHERE topic_id = %s AND path = ANY(%s) AND state = 'committed'"
        " AND NOT EXISTS (SELECT FROM file_values AS known WHERE known.topic_id = files.topic_id"
        " AND known.path = files.path) ORDER BY path",
        (topic.id, list(paths)),
    )
    return [path for (path,) in rows]
