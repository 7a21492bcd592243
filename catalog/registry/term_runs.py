"""Runs of the term store, and the data files that they cover. Advisory: searches work without them.

The runs of a column that name a file have its postings together, so rows of a file are always deleted together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.registry import rewriting_runs, topics
from catalog.registry.postgres import Connection
from catalog.registry.run_clock import now_ms
from catalog.term_runs import GoneOffsets, IndexState, LeafTable, TermRun

_COLUMNS: Final = (
    "id, column_id, name, kind, mapping, level, path, size_bytes, checksum, entries, begun_ms, spans, leaves, footer"
)
_COVERING: Final = """
SELECT column_id, file.path, run_id FROM term_runs AS run JOIN term_run_files AS file ON run_id = id
WHERE topic_id = %(topic)s AND state = 'current' AND file.path = ANY(%(paths)s)
AND (column_id, mapping) IN (SELECT * FROM unnest(%(columns)s::text[], %(mappings)s::text[]))
"""
_GONE: Final = """
SELECT partition, start_offset, end_offset, noted_ms FROM erased_offsets WHERE topic_id = %(topic)s
UNION ALL SELECT partition, (span->>0)::bigint, (span->>1)::bigint, noted_ms
FROM accepted_offsets, jsonb_array_elements(spans) AS span WHERE topic_id = %(topic)s
"""
_FOLDER: Final = "index_folder"
_CUT: Final = "index_cut"
_AT_ONCE: Final = 10_000
"""Paths of a query."""


def load(connection: Connection, topic: TopicRow, columns: Collection[str] | None = None) -> tuple[TermRun, ...]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM term_runs WHERE topic_id = %s AND state = 'current'"  # noqa: S608 - no input
        " AND (%s::text[] IS NULL OR column_id = ANY(%s)) ORDER BY id",
        (topic.id, *[None if columns is None else sorted(columns)] * 2),
    )
    return tuple(_run(row) for row in rows)


def state(connection: Connection, topic: TopicRow, mappings: Mapping[str, str], paths: Sequence[str]) -> IndexState:
    """The runs of columns and the files of `paths` that these cover.

    The runs of one file are read in one statement: a merge in between can't hide one of them.
    """
    files = defaultdict[tuple[str, str], set[str]](set)
    for start in range(0, len(paths), _AT_ONCE):
        values = {
            "topic": topic.id,
            "columns": list(mappings),
            "mappings": list(mappings.values()),
            "paths": list(paths[start : start + _AT_ONCE]),
        }
        for column, path, run_id in connection.execute(_COVERING, values):
            files[column, path].add(run_id)
    used = set[str]().union(*files.values())
    runs = tuple(run for run in load(connection, topic, mappings) if run.id in used) if used else ()
    return IndexState(runs=runs, files={key: frozenset(ids) for key, ids in files.items()})


def add(
    connection: Connection, topic: TopicRow, runs: Sequence[TermRun], paths: Collection[str], *, build: str
) -> bool:
    """The runs of a column have the postings of these files together.

    False if the build's claim was deleted: an erasure that didn't wait for it may have finished.
    """
    topics.lock(connection, topic)
    if not rewriting_runs.may_register(connection, topic, build):
        return False
    for run in runs:
        _insert(connection, topic, run)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO term_run_files (run_id, path) SELECT %s, unnest(%s::text[])",
            [(run.id, sorted(set(paths))) for run in runs],
        )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = ANY(%s)", (topic.id, _CUT, sorted(set(paths)))
    )
    return True


def begin_merge(connection: Connection, topic: TopicRow, runs: Sequence[TermRun], *, build: str) -> bool:
    """Date a build back to the oldest of the runs that it is going to read, so that erasures wait for it.

    False if one of them is not current any more, or the build's claim was deleted.
    """
    topics.lock(connection, topic)
    begun_ms = min(run.begun_ms for run in runs)
    return _are_current(connection, topic, [run.id for run in runs]) and rewriting_runs.may_register(
        connection, topic, build, begun_ms=begun_ms
    )


def replace(
    connection: Connection,
    topic: TopicRow,
    run: TermRun,
    merged: Collection[str],
    *,
    build: str,
    kept: Collection[str] | None = None,
) -> bool:
    """Only files of `kept`, by default all, stay covered.

    False if one of them is not current any more, or the build's claim was deleted.
    """
    topics.lock(connection, topic)
    ids = sorted(merged)
    if not _are_current(connection, topic, ids) or not rewriting_runs.may_register(connection, topic, build):
        return False
    if kept is not None:
        _uncover(connection, ids, kept=sorted(kept))
    _insert(connection, topic, run)
    connection.execute(
        "INSERT INTO term_run_files (run_id, path) SELECT DISTINCT %s, path FROM term_run_files WHERE run_id = ANY(%s)",
        (run.id, ids),
    )
    connection.execute("DELETE FROM term_run_files WHERE run_id = ANY(%s)", (ids,))
    connection.execute("UPDATE term_runs SET state = 'dropped' WHERE id = ANY(%s)", (ids,))
    return True


def gone_offsets(connection: Connection, topic: TopicRow) -> tuple[int, tuple[GoneOffsets, ...]]:
    """Return the erased and accepted offsets, and a time: offsets that are noted later are not before it."""
    topics.lock(connection, topic)
    connection.execute("SELECT pg_sleep(0.001)")  # later than all times of the caller
    at_ms = now_ms(connection, topic)
    rows = connection.execute(_GONE, {"topic": topic.id})
    return at_ms, tuple(GoneOffsets(*row) for row in rows)


def erase(connection: Connection, topic: TopicRow, gone: Sequence[GoneOffsets]) -> tuple[str, ...]:
    """Take the runs that may have postings of `gone`, or of erased and accepted offsets, out of use. Returns their ids.

    The remaining runs have none of these, and are dated after them.
    """
    at_ms, noted = gone_offsets(connection, topic)
    every = [*gone, *noted]
    rows = connection.execute(
        "SELECT id, begun_ms, spans FROM term_runs WHERE topic_id = %s AND state = 'current' ORDER BY id", (topic.id,)
    ).fetchall()
    tainted = tuple(run_id for run_id, begun_ms, spans in rows if any(it.may_be_in(begun_ms, spans) for it in every))
    drop(connection, topic, tainted)
    connection.execute(
        "UPDATE term_runs SET begun_ms = %(at)s WHERE topic_id = %(topic)s AND state = 'current' AND begun_ms < %(at)s",
        {"topic": topic.id, "at": at_ms},
    )
    return tainted


def drop(connection: Connection, topic: TopicRow, ids: Collection[str]) -> None:
    """Their files aren't covered any more, also by other runs of the column."""
    topics.lock(connection, topic)
    _uncover(connection, sorted(ids))
    connection.execute(
        "UPDATE term_runs SET state = 'dropped' WHERE topic_id = %s AND id = ANY(%s)", (topic.id, sorted(ids))
    )


def forget_files(connection: Connection, topic: TopicRow, kept: Collection[str], *, before_ms: int) -> tuple[str, ...]:
    """Forget the files that aren't in `kept`, as far as they were covered by `before_ms`.

    Returns the current runs that cover no file any more. Keeps all files while a rewrite isn't settled: its new files
    inherit from them.
    """
    topics.lock(connection, topic)
    values = {"topic": topic.id, "kept": sorted(kept), "before": before_ms, "cut": _CUT}
    connection.execute(
        "DELETE FROM term_run_files AS file USING term_runs AS run WHERE run.id = file.run_id"
        " AND run.topic_id = %(topic)s AND noted_ms < %(before)s"
        " AND NOT EXISTS (SELECT FROM unnest(%(kept)s::text[]) AS kept WHERE kept = file.path)"
        " AND NOT EXISTS (SELECT FROM metadata WHERE topic_id = %(topic)s AND key = 'rewrite' AND NOT deleted)",
        values,
    )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %(topic)s AND key = %(cut)s AND name <> ALL(%(kept)s)", values
    )
    rows = connection.execute(
        "SELECT id FROM term_runs AS run WHERE topic_id = %s AND state = 'current'"
        " AND NOT EXISTS (SELECT FROM term_run_files WHERE run_id = run.id) ORDER BY id",
        (topic.id,),
    )
    return tuple(identifier for (identifier,) in rows)


def dropped(connection: Connection, topic: TopicRow) -> dict[str, str]:
    """Paths, by id, of objects to delete."""
    rows = connection.execute(
        "SELECT id, path FROM term_runs WHERE topic_id = %s AND state = 'dropped' ORDER BY id", (topic.id,)
    )
    return dict(rows.fetchall())


def forget(connection: Connection, topic: TopicRow, run_id: str) -> None:
    """Call it after the object of a dropped run is deleted."""
    connection.execute(
        "DELETE FROM term_runs WHERE topic_id = %s AND id = %s AND state = 'dropped'", (topic.id, run_id)
    )


def note_cut(connection: Connection, topic: TopicRow, path: str) -> None:
    """Note a file for which the whole time of a build wasn't enough: later builds read the remaining files first."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, '{}') ON CONFLICT DO NOTHING",
        (topic.id, _CUT, path),
    )


def cut(connection: Connection, topic: TopicRow) -> frozenset[str]:
    """Return these files."""
    rows = connection.execute("SELECT name FROM metadata WHERE topic_id = %s AND key = %s", (topic.id, _CUT))
    return frozenset(name for (name,) in rows)


def note_folder(connection: Connection, topic: TopicRow, folder: str) -> None:
    """Call it before uploads, so that the folder is listed after `location` changes."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, '{}')"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET updated = now()",
        (topic.id, _FOLDER, folder),
    )


def folders(connection: Connection, topic: TopicRow) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT name FROM metadata WHERE topic_id = %(topic)s AND key = %(key)s"
        " UNION SELECT regexp_replace(path, '/[^/]+/[^/]+$', '') FROM term_runs WHERE topic_id = %(topic)s ORDER BY 1",
        {"topic": topic.id, "key": _FOLDER},
    )
    return tuple(folder for (folder,) in rows)


def forget_folder(connection: Connection, topic: TopicRow, folder: str) -> None:
    """Only a folder without objects. One noted by a build in the last hour stays."""
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = %s AND updated < now() - interval '1 hour'",
        (topic.id, _FOLDER, folder),
    )


def _are_current(connection: Connection, topic: TopicRow, ids: Sequence[str]) -> bool:
    current = connection.execute(
        "SELECT count(*) FROM term_runs WHERE id = ANY(%s) AND topic_id = %s AND state = 'current'",
        (list(ids), topic.id),
    ).fetchone()
    return current is not None and current[0] == len(ids)


def _uncover(connection: Connection, ids: Sequence[str], *, kept: Sequence[str] = ()) -> None:
    """Forget the files of these runs, except some, for every run of the same columns and mappings."""
    connection.execute(
        "DELETE FROM term_run_files AS file USING term_run_files AS gone, term_runs AS run, term_runs AS dropped"
        " WHERE gone.run_id = ANY(%(ids)s) AND file.path = gone.path AND run.id = file.run_id"
        " AND dropped.id = gone.run_id AND run.topic_id = dropped.topic_id AND run.column_id = dropped.column_id"
        " AND run.mapping = dropped.mapping AND file.path <> ALL(%(kept)s)",
        {"ids": list(ids), "kept": list(kept)},
    )


def _insert(connection: Connection, topic: TopicRow, run: TermRun) -> None:
    connection.execute(
        f"INSERT INTO term_runs (topic_id, {_COLUMNS}) VALUES (%s{', %s' * 14})",  # noqa: S608 - no input
        (
            topic.id,
            run.id,
            run.column,
            run.name,
            run.kind,
            run.mapping,
            run.level,
            run.path,
            run.size_bytes,
            run.checksum,
            run.entries,
            run.begun_ms,
            Jsonb(run.spans),
            run.leaves.to_bytes(),
            run.footer,
        ),
    )


def _run(row: Sequence[Any]) -> TermRun:
    *plain, spans, leaves, footer = row
    identifier, column, name, kind, mapping, level, path, size_bytes, checksum, entries, begun_ms = plain
    return TermRun(
        id=identifier,
        column=column,
        name=name,
        kind=kind,
        mapping=mapping,
        level=level,
        path=path,
        size_bytes=size_bytes,
        checksum=checksum,
        entries=entries,
        begun_ms=begun_ms,
        spans=tuple((partition, start, end) for partition, start, end in spans),
        leaves=LeafTable.of_bytes(bytes(leaves)),
        footer=bytes(footer),
    )
