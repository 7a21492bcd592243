"""Offsets that consumer groups committed at `archiver serve kafka`.

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from catalog.registry import group_coordinators
from catalog.registry.group_coordinators import GroupClaim
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """Where a group goes on in a partition. It holds for the topic with this id only."""

    topic_id: UUID
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def commit(
    connection: Connection,
    group_id: str,
    offsets: Mapping[tuple[str, int], GroupOffset],
    *,
    claim: GroupClaim | None = None,
) -> None:
    """Keep offsets by topic and partition, in place of those before. CoordinatorDeposed where `claim` doesn't hold."""
    if claim is not None:
        group_coordinators.check(connection, group_id, claim)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO group_offsets (group_id, topic, partition, topic_id, next_offset, leader_epoch, metadata)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (group_id, topic, partition) DO UPDATE SET"
            " topic_id = excluded.topic_id, next_offset = excluded.next_offset,"
            " leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, committed_at = now()",
            [
                (group_id, topic, partition, one.topic_id, one.offset, one.leader_epoch, one.metadata.encode())
                for (topic, partition), one in sorted(offsets.items())
            ],
        )


def load(connection: Connection, group_id: str) -> dict[tuple[str, int], GroupOffset]:
    """All offsets of a group, by topic and partition."""
    found = connection.execute(
        "SELECT topic, partition, topic_id, next_offset, leader_epoch, metadata FROM group_offsets"
        " WHERE group_id = %s ORDER BY topic, partition",
        (group_id,),
    )
    return {
        (topic, partition): GroupOffset(
            topic_id=topic_id, offset=offset, leader_epoch=epoch, metadata=metadata.decode()
        )
        for topic, partition, topic_id, offset, epoch, metadata in found
    }


def delete(
    connection: Connection,
    group_id: str,
    places: Collection[tuple[str, int]] | None = None,
    *,
    claim: GroupClaim | None = None,
) -> int:
    """Forget a group's offsets, or those of some partitions; return how many there were.

    CoordinatorDeposed where `claim` doesn't hold.
    """
    if claim is not None:
        group_coordinators.check(connection, group_id, claim)
    if places is None:
        return connection.execute("DELETE FROM group_offsets WHERE group_id = %s", (group_id,)).rowcount
    return sum(
        connection.execute(
            "DELETE FROM group_offsets WHERE group_id = %s AND topic = %s AND partition = %s",
            (group_id, topic, partition),
        ).rowcount
        for topic, partition in sorted(places)
    )


def groups(connection: Connection) -> tuple[str, ...]:
    """The groups that have offsets, by name."""
    found = connection.execute("SELECT DISTINCT group_id FROM group_offsets ORDER BY group_id")
    return tuple(str(group_id) for (group_id,) in found)
