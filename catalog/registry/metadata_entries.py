"""Metadata of records, with its history. Rows of an erasure are doomed first, then forgotten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from catalog.errors import MetadataRefused
from catalog.model import TopicRow
from catalog.record_metadata import MOST_ENTRIES, MetadataEntry, OfKey, OfOffsets
from catalog.registry import erased_offsets, topics
from catalog.registry.parts import Part, in_statements, in_transaction
from catalog.registry.postgres import Connection

_COLUMNS: Final = "id, key, partition, start_offset, end_offset, name, value, set_at, sequence, author, salt"
_INSERT: Final = (
    f"INSERT INTO record_metadata (topic_id, is_doomed, {_COLUMNS})"  # noqa: S608 - names of columns
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO "
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


def load(
    connection: Connection, topic: TopicRow, names: Collection[str] | None = None, *, settled: bool = False
) -> tuple[MetadataEntry, ...]:
    """The entries, of these names if given, in the order in which they were set.

    With `settled`, after each `add` that saw no open erasure.
    """
    if settled:
        topics.lock(connection, topic)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM record_metadata WHERE topic_id = %(topic)s AND NOT is_doomed"  # noqa: S608 - as above
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
    row = connection.execute("SELECT count(*) FROM record_metadata WHERE topic_id = %s", (topic.id,)).fetchone()
    if row is not None and row[0] + count > MOST_ENTRIES:
        raise MetadataRefused(
            "the topic would have too much metadata, with its history: give one entry to a range of offsets instead"
            " of many",
            topic=topic.topic,
            entries=row[0],
            most=MOST_ENTRIES,
        )


def add(connection: Connection, topic: TopicRow, entries: Sequence[MetadataEntry]) -> None:
    """Add entries. Idempotent. Raises MetadataRefused for too many or erased offsets, and while an erasure searches."""
    topics.lock(connection, topic)
    _check(connection, topic, len(entries))
    erased = erased_offsets.load(connection, topic)
    if any(isinstance(entry.target, OfOffsets) and entry.target.meets(erased) for entry in entries):
        raise MetadataRefused("records of these offsets were erased: leave out their offsets", topic=topic.topic)
    _insert(connection, topic, entries, "NOTHING")


def restore(connection: Connection, topic: TopicRow, entries: Sequence[MetadataEntry]) -> int:
    """Add entries that the registry lacks, and return their number."""
    topics.lock(connection, topic)
    connection.execute(
        "SELECT setval('metadata_sequence', greatest(nextval('metadata_sequence'), %s))",
        (max((entry.sequence for entry in entries), default=1),),
    )
    rows = connection.execute("SELECT id FROM record_metadata WHERE topic_id = %s", (topic.id,))
    present = {row[0] for row in rows}
    missing = [entry for entry in entries if entry.id not in present]
    _insert(connection, topic, missing, "NOTHING")
    return len(missing)


def doom(connection: Connection, topic: TopicRow, entries: Iterable[MetadataEntry]) -> None:
    """Take entries out of use, known or not, until they are forgotten."""
    topics.lock(connection, topic)
    _insert(connection, topic, entries, "UPDATE SET is_doomed = true", is_doomed=True)


def doomed(connection: Connection, topic: TopicRow) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT id FROM record_metadata WHERE topic_id = %s AND is_doomed ORDER BY id", (topic.id,)
    )
    return tuple(row[0] for row in rows)


def forget(connection: Connection, topic: TopicRow, ids: Collection[str]) -> None:
    connection.execute("DELETE FROM record_metadata WHERE topic_id = %s AND id = ANY(%s)", (topic.id, list(ids)))


def _insert(
    connection: Connection, topic: TopicRow, entries: Iterable[MetadataEntry], again: str, *, is_doomed: bool = False
) -> None:
    rows = [(topic.id, is_doomed, *_row(entry)) for entry in entries]
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
    restore = in_transaction(restore)
    doom = in_transaction(doom)
    doomed = in_statements(doomed)
    forget = in_statements(forget)
