"""The offsets of accepted rows. Idempotent."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.ranges.holes import AcceptedOffsets
from catalog.registry.postgres import Connection


def load(connection: Connection, topic: TopicRow) -> tuple[AcceptedOffsets, ...]:
    found = connection.execute(
        "SELECT partition, spans, removed_rows, lost_rows FROM accepted_offsets WHERE topic_id = %s ORDER BY 1, 2",
        (topic.id,),
    )
    return tuple(
        AcceptedOffsets(
            partition=partition, spans=tuple((start, end) for start, end in spans), removed=removed, lost=lost
        )
        for partition, spans, removed, lost in found
    )


def keep(connection: Connection, topic: TopicRow, accepted: Iterable[AcceptedOffsets], *, commit_id: str) -> None:
    for one in accepted:
        connection.execute(
            "INSERT INTO accepted_offsets"
            " (topic_id, partition, first_offset, commit_id, spans, removed_rows, lost_rows)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (
                topic.id,
                one.partition,
                one.spans[0][0],
                commit_id,
                Jsonb([list(span) for span in one.spans]),
                one.removed,
                one.lost,
            ),
        )
