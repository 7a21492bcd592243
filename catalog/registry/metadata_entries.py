"""Metadata of records, with its history.

An entry is pending until its object is written, then current. Entries of an erasure are doomed first, then forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from catalog.errors import MetadataRefused
from catalog.model import TopicRow
from catalog.record_metadata import MOST_ENTRIES, MetadataEntry, OfKey, OfOffsets
from catalog.registry import erased_offsets, topics
from catalog.registry.parts import Part, in_statements, in_transaction
from catalog.registry.postgres import Connection

_WRITTEN_AT_ONCE: Final = 64
_COLUMNS: Final = "id, key, partition, start_offset, end_offset, name, value, set_at, sequence, author, salt"
_INSERT: Final = (
    f"INSERT INTO record_metadata (topic_id, state, folders, {_COLUMNS})"  # noqa: S608 - names of columns
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO "
)
_WITH_FOLDER: Final = (
    "folders = CASE WHEN record_metadata.folders @> excluded.folders THEN record_metadata.folders"
    " ELSE record_metadata.folders || excluded.folders END"
)


def stamp(connection: Connection, topic: TopicRow, count: int) -> tuple[datetime, list[int]]:
    """The time by Postgres' clock, and a number for each of `count` entries. Raises MetadataRefused as `add`.

    The time is never before the last entry's: a rebuilt registry may have another clock.
    """
    _check(connection, topic, count)
    row = connection.execute(
        "SELECT greatest(clock_timestamp(), (SELECT max(set_at) FROM record_metadata WHERE topic_id = %s)),"
        " array_agg(nextval('metadata_sequence')) FROM generate_series(1, %s)",
        (topic.id, count),
    ).fetchone()
    assert row is not None
    return row[0].astimezone(UTC), list(row[1])


def load(connection: Connection, topic: TopicRow, names: Collection[str] | None = None) -> tuple[MetadataEntry, ...]:
    """The current entries, of these names if given, in the order in which they were set."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM record_metadata WHERE topic_id = %(topic)s AND state = 'current'"  # noqa: S608 - as above
        " AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s)) ORDER BY set_at, sequence, id",
        {"topic": topic.id, "names": None if names is None else list(names)},
    )
    return tuple(_entry(row) for row in rows)


def _check(connection: Connection, topic: TopicRow, count: int) -> None:
    searching = [
        erasure
        for erasure, value in erased_offsets.open_erasures(connection, topic).items()
        if erased_offsets.SEARCHED_MS not in value
    ]
    if searching:
        raise MetadataRefused(
            "an erasure of the topic has not found all of its records yet: set metadata when it has. If its run was"
            " killed, run `archiver erase` again",
            topic=topic.topic,
            erasures=searching,
        )
    row = connection.execute(
        "SELECT count(*) FROM record_metadata WHERE topic_id = %s"
        " AND (state = 'current' OR set_at > clock_timestamp() - interval '1 hour')",  # older ones are of killed runs
        (topic.id,),
    ).fetchone()
    if row is not None and row[0] + count > MOST_ENTRIES:
        raise MetadataRefused(
            "the topic would have too much metadata, with its history: give one entry to a range of offsets instead"
            " of many",
            topic=topic.topic,
            entries=row[0],
            most=MOST_ENTRIES,
        )


def add(
    connection: Connection, topic: TopicRow, entries: Sequence[MetadataEntry], folder: str | None
) -> tuple[MetadataEntry, ...]:
    """Add entries as pending, and return them with their times. `folder` will have their objects.

    Raises MetadataRefused for too many or erased offsets, and while an erasure searches.
    """
    topics.lock(connection, topic)
    time, numbers = stamp(connection, topic, len(entries))
    erased = erased_offsets.load(connection, topic)
    if any(isinstance(entry.target, OfOffsets) and entry.target.meets(erased) for entry in entries):
        raise MetadataRefused("records of these offsets were erased: leave out their offsets", topic=topic.topic)
    stamped = tuple(replace(entry, time=time, sequence=number) for entry, number in zip(entries, numbers, strict=True))
    _insert(connection, topic, stamped, "NOTHING", state="pending", folder=folder)
    return stamped


def publish(
    connection: Connection,
    topic: TopicRow,
    entries: Sequence[MetadataEntry],
    write: Callable[[Sequence[MetadataEntry]], None] | None,
) -> None:
    """Make pending entries current, after `write` wrote their objects, some at a time.

    Raises MetadataRefused, before any object is written, if an erasure began since they were added. A later
    erasure waits.
    """
    ids = [entry.id for entry in entries]
    rows = connection.execute(
        "SELECT id FROM record_metadata WHERE topic_id = %s AND id = ANY(%s) AND state = 'pending'"
        " ORDER BY id FOR UPDATE",
        (topic.id, ids),
    ).fetchall()
    if len(rows) < len(ids):
        raise MetadataRefused(
            "an erasure of the topic began in the same moment: run the command again", topic=topic.topic
        )
    if write is not None:
        for start in range(0, len(entries), _WRITTEN_AT_ONCE):
            write(entries[start : start + _WRITTEN_AT_ONCE])
            connection.execute("SELECT 1")  # Postgres ends idle transactions, and so the lock
    connection.execute("UPDATE record_metadata SET state = 'current' WHERE id = ANY(%s)", (ids,))


def settle(connection: Connection, topic: TopicRow) -> None:
    """Wait for each `add` that saw no open erasure."""
    topics.lock(connection, topic)


def doom_pending(connection: Connection, topic: TopicRow) -> None:
    """Refuse entries that aren't published yet, after each `publish` that has begun."""
    connection.execute("SET LOCAL lock_timeout = 0")  # `publish` may write thousands of objects
    connection.execute(
        "UPDATE record_metadata SET state = 'doomed' WHERE topic_id = %s AND state = 'pending'", (topic.id,)
    )


def restore(
    connection: Connection,
    topic: TopicRow,
    entries: Sequence[MetadataEntry],
    folder: str,
    present: Callable[[], Collection[str]],
) -> int:
    """Add entries that the registry lacks, and return their number. Pending entries become current.

    `present` gives the objects in the folder: an erasure may have deleted some since `entries` were read.
    """
    topics.lock(connection, topic)
    connection.execute(
        "SELECT setval('metadata_sequence', greatest(nextval('metadata_sequence'), %s))",
        (max((entry.sequence for entry in entries), default=1),),
    )
    before = ids(connection, topic)
    remaining = present()
    kept = [entry for entry in entries if entry.id in remaining]
    again = "state = CASE record_metadata.state WHEN 'pending' THEN 'current' ELSE record_metadata.state END"
    _insert(connection, topic, kept, f"UPDATE SET {_WITH_FOLDER}, {again}", state="current", folder=folder)
    return sum(entry.id not in before for entry in kept)


def ids(connection: Connection, topic: TopicRow, *, current_in: str | None = None) -> frozenset[str]:
    """The ids of all rows, or only of current ones with an object in a folder."""
    rows = connection.execute(
        "SELECT id FROM record_metadata WHERE topic_id = %(topic)s"
        " AND (%(folder)s::text IS NULL OR (state = 'current' AND %(folder)s = ANY(folders)))",
        {"topic": topic.id, "folder": current_in},
    )
    return frozenset(row[0] for row in rows)


def doom_ids(connection: Connection, topic: TopicRow, ids: Collection[str]) -> None:
    """Take known entries out of use."""
    topics.lock(connection, topic)
    connection.execute(
        "UPDATE record_metadata SET state = 'doomed' WHERE topic_id = %s AND id = ANY(%s)", (topic.id, list(ids))
    )


def doom(connection: Connection, topic: TopicRow, entries: Iterable[MetadataEntry], folder: str | None) -> None:
    """Take entries out of use, known or not, until they are forgotten."""
    topics.lock(connection, topic)
    again = f"UPDATE SET state = 'doomed', {_WITH_FOLDER}"
    _insert(connection, topic, entries, again, state="doomed", folder=folder)


def doomed(connection: Connection, topic: TopicRow) -> Mapping[str, Sequence[str]]:
    """The folders that may have objects of doomed entries, by id."""
    rows = connection.execute(
        "SELECT id, folders FROM record_metadata WHERE topic_id = %s AND state = 'doomed' ORDER BY id", (topic.id,)
    )
    return dict(rows.fetchall())


def forget(connection: Connection, topic: TopicRow, ids: Collection[str]) -> None:
    """Delete rows. A `restore` that listed their objects before meets them doomed."""
    topics.lock(connection, topic)
    connection.execute("DELETE FROM record_metadata WHERE topic_id = %s AND id = ANY(%s)", (topic.id, list(ids)))


def _insert(
    connection: Connection,
    topic: TopicRow,
    entries: Iterable[MetadataEntry],
    again: str,
    *,
    state: str,
    folder: str | None,
) -> None:
    folders = [] if folder is None else [folder]
    rows = [(topic.id, state, folders, *_row(entry)) for entry in entries]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT + again, rows)


def _row(entry: MetadataEntry) -> tuple[Any, ...]:
    match entry.target:
        case OfKey(key):
            target: tuple[Any, ...] = (key, None, None, None)
        case OfOffsets(partition, start, end):
            target = (None, partition, start, end)
    return (entry.id, *target, entry.name, entry.value, entry.time, entry.sequence, entry.author, entry.salt)


def _entry(row: tuple[Any, ...]) -> MetadataEntry:
    entry_id, key, partition, start, end, name, value, time, sequence, author, salt = row
    return MetadataEntry(
        id=entry_id,
        target=OfOffsets(partition, start, end) if key is None else OfKey(bytes(key)),
        name=name,
        value=value,
        time=time.astimezone(UTC),
        sequence=sequence,
        author=author,
        salt=salt,
    )


class RecordMetadataReader(Part):
    load = in_transaction(load)


class RecordMetadata(RecordMetadataReader):
    stamp = in_transaction(stamp)
    add = in_transaction(add)
    publish = in_transaction(publish)
    settle = in_transaction(settle)
    doom_pending = in_transaction(doom_pending)
    doom_ids = in_transaction(doom_ids)
    ids = in_statements(ids)
    restore = in_transaction(restore)
    doom = in_transaction(doom)
    doomed = in_statements(doomed)
    forget = in_transaction(forget)
