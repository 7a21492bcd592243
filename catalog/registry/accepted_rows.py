"""The offsets of accepted rows. Idempotent."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.types.json import Jsonb

from catalog.model import TopicRow
from catalog.ranges.holes import AcceptedOffsets
from catalog.registry.postgres import Connection
from catalog.registry.run_clock import now_ms


def load(connection: Connection, topic: TopicRow) -> tuple[AcceptedOffsets, ...]:
    rows = connection.execute(
        "SELECT partition, spans, removed_rows, lost_rows FROM accepted_offsets WHERE topic_id = %s ORDER BY 1, 2",
        (topic.id,),
    )
    return tuple(
        AcceptedOffsets(
            partition=partition, spans=tuple((start, end) for start, end in spans), removed=removed, lost=lost
        )
        for partition, spans, removed, lost in rows
    )


def keep(connection: Connection, topic: TopicRow, accepted: Iterable[AcceptedOffsets], *, commit_id: str) -> None:
    for acceptance in accepted:
        connection.execute(
            "INSERT INTO accepted_offsets"
            " (topic_id, partition, first_offset, commit_id, spans, removed_rows, lost_rows, noted_ms)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (
                topic.id,
                acceptance.partition,
                acceptance.spans[0][0],
                commit_id,
                Jsonb([list(span) for span in acceptance.spans]),
                acceptance.removed,
                acceptance.lost,
                now_ms(connection, topic),
            ),
        )
