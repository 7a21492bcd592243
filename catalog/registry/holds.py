"""Legal holds, placed under the topic's row lock, under which rewrites begin. Idempotent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from psycopg.types.json import Jsonb

from catalog.errors import RecordsHeld, RegistryError
from catalog.model import TopicRow
from catalog.ranges.legal_holds import Hold, in_the_way
from catalog.ranges.rewrite import RecordSpan, Rewrite
from catalog.registry import first_offsets, topics
from catalog.registry.postgres import Connection


def load(connection: Connection, topic: TopicRow) -> tuple[Hold, ...]:
    """In order of placement, released ones too."""
    rows = connection.execute("SELECT value FROM holds WHERE topic_id = %s ORDER BY id", (topic.id,))
    return tuple(Hold.from_json(value) for (value,) in rows)


def active(connection: Connection, topic: TopicRow) -> tuple[Hold, ...]:
    rows = connection.execute(
        "SELECT value FROM holds WHERE topic_id = %s AND released_at IS NULL ORDER BY id", (topic.id,)
    )
    return tuple(Hold.from_json(value) for (value,) in rows)


def keep(connection: Connection, topic: TopicRow, hold: Hold) -> None:
    """A release is final."""
    topics.lock(connection, topic)
    connection.execute(
        "INSERT INTO holds (id, topic_id, value, released_at) VALUES (%s, %s, %s, %s::timestamptz)"
        " ON CONFLICT (id) DO UPDATE SET value = excluded.value, released_at = excluded.released_at"
        " WHERE holds.released_at IS NULL",
        (hold.id, topic.id, Jsonb(hold.to_json()), hold.released_at),
    )


def named(connection: Connection, topic: TopicRow, hold_id: str) -> Hold:
    """Raises RegistryError if the topic has no such hold."""
    for hold in load(connection, topic):
        if hold.id == hold_id:
            return hold
    raise RegistryError("the topic has no such hold: see `archiver hold --list`", topic=topic.topic, hold=hold_id)


def check(connection: Connection, topic: TopicRow, rewrite: Rewrite) -> None:
    """Raise RecordsHeld if a rewrite would remove held records."""
    if rewrite.removes:
        spans = [*removed_spans(rewrite), *_passed_over(rewrite, first_offsets.load(connection, topic))]
        refuse_held(topic, active(connection, topic), spans, command=rewrite.reason)


def _passed_over(rewrite: Rewrite, known: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """(partition, start, end), with or without files."""
    return [
        (partition, known.get(partition, 0), offset)
        for partition, offset in sorted(rewrite.first_offsets.items())
        if known.get(partition, 0) < offset
    ]


def removed_spans(rewrite: Rewrite) -> list[tuple[int, int, int]]:
    """Return (partition, start, end): erased offsets exactly.

    Of a range around the new first offset the lower part; a retired range above it whole.
    """
    left_out = [span for group in rewrite.groups for span in group.all_spans]
    first = rewrite.first_offsets
    removed = [
        (part.partition, part.start_offset, _retired_end(part, first.get(part.partition)))
        for part in left_out
        if part.retired
    ]
    if not rewrite.erased:
        removed += [(part.partition, part.start_offset, part.end_offset) for part in left_out if part.erased]
    return [*removed, *rewrite.erased]


def _retired_end(span: RecordSpan, first_offset: int | None) -> int:
    if first_offset is None or first_offset <= span.start_offset:
        return span.end_offset
    return min(span.end_offset, first_offset)


def refuse_held(topic: TopicRow, holds: Iterable[Hold], spans: Iterable[tuple[int, int, int]], *, command: str) -> None:
    """Raise RecordsHeld if an active hold has some of these offsets."""
    all_holds = tuple(holds)
    for partition, start, end in spans:
        hold = in_the_way(all_holds, partition, start, end)
        if hold is not None:
            raise RecordsHeld(
                "a legal hold is on these records, so none of them may be removed; nothing was changed. Release it"
                " first, if that is right: `archiver hold TOPIC --release ID`",
                topic=topic.topic,
                command=command,
                partition=partition,
                offsets=f"[{start}, {end})",
                hold=hold.id,
                reason=hold.reason,
                placed_by=hold.placed_by,
                placed_at=hold.placed_at,
            )
