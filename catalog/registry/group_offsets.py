"""Offsets that consumer groups committed at `archiver serve kafka`, by cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias
from uuid import UUID

from catalog.registry import group_coordinators
from catalog.registry.group_coordinators import GroupClaim, KeptOffsets, OffsetBudget
from catalog.registry.postgres import Connection

_ROW_BYTES: Final = 240
"""What a row takes in the table and its index, beside its names and its metadata, about."""
_SIZE: Final = f"{_ROW_BYTES} + 2 * (octet_length(group_id) + octet_length(topic)) + octet_length(metadata)"
Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A group's next offset in a partition."""

    topic_id: UUID
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def commit(
    connection: Connection,
    cluster_id: str,
    group_id: str,
    offsets: Mapping[tuple[str, int], GroupOffset],
    *,
    claim: GroupClaim | None = None,
    budget: OffsetBudget | None = None,
) -> None:
    """By topic and partition. Nothing is stored after an error.

    Raises CoordinatorDeposed if `claim` doesn't hold, OffsetBudgetReached if growth exceeds `budget`.
    """
    kept = None if claim is None else group_coordinators.check(connection, group_id, claim)
    if kept is not None and budget is not None and offsets:
        _keep_within(connection, cluster_id, group_id, offsets, kept=kept, budget=budget)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO group_offsets"
            " (cluster_id, group_id, topic, partition, topic_id, next_offset, leader_epoch, metadata)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (cluster_id, group_id, topic, partition) DO UPDATE"
            " SET topic_id = excluded.topic_id, next_offset = excluded.next_offset,"
            " leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, committed_at = now()",
            [
                (
                    cluster_id,
                    group_id,
                    topic,
                    partition,
                    position.topic_id,
                    position.offset,
                    position.leader_epoch,
                    position.metadata.encode(),
                )
                for (topic, partition), position in sorted(offsets.items())
            ],
        )


def load(connection: Connection, cluster_id: str, group_id: str) -> dict[tuple[str, int], GroupOffset]:
    rows = connection.execute(
        "SELECT topic, partition, topic_id, next_offset, leader_epoch, metadata FROM group_offsets"
        " WHERE cluster_id = %s AND group_id = %s ORDER BY topic, partition",
        (cluster_id, group_id),
    )
    return {
        (topic, partition): GroupOffset(
            topic_id=topic_id, offset=offset, leader_epoch=epoch, metadata=metadata.decode()
        )
        for topic, partition, topic_id, offset, epoch, metadata in rows
    }


def delete(
    connection: Connection,
    cluster_id: str,
    group_id: str,
    places: Collection[tuple[str, int]] | None = None,
    *,
    claim: GroupClaim | None = None,
) -> int:
    """Delete all offsets or only `places`; return their number. Raises CoordinatorDeposed if `claim` doesn't hold."""
    kept = None if claim is None else group_coordinators.check(connection, group_id, claim)
    count = _deleted(connection, cluster_id, group_id, places)
    if count and kept is not None and kept.owner:
        left = KeptOffsets(kept.owner, _taken(connection, cluster_id, group_id))
        group_coordinators.note(connection, cluster_id, group_id, left)
    return count


def _deleted(connection: Connection, cluster_id: str, group_id: str, places: Collection[Place] | None) -> int:
    if places is None:
        return connection.execute(
            "DELETE FROM group_offsets WHERE cluster_id = %s AND group_id = %s", (cluster_id, group_id)
        ).rowcount
    return sum(
        connection.execute(
            "DELETE FROM group_offsets WHERE cluster_id = %s AND group_id = %s AND topic = %s AND partition = %s",
            (cluster_id, group_id, topic, partition),
        ).rowcount
        for topic, partition in sorted(places)
    )


def groups(connection: Connection, cluster_id: str) -> tuple[str, ...]:
    """Including groups not yet taken by a cluster."""
    rows = connection.execute(
        "SELECT DISTINCT group_id FROM group_offsets WHERE cluster_id IN (%s, '') ORDER BY group_id", (cluster_id,)
    )
    return tuple(str(group_id) for (group_id,) in rows)


def other_clusters(connection: Connection, cluster_id: str) -> tuple[str, ...]:
    """Empty if this cluster has offsets."""
    rows = connection.execute(
        "SELECT DISTINCT cluster_id FROM group_offsets WHERE cluster_id NOT IN (%(cluster)s, '')"
        " AND NOT EXISTS (SELECT FROM group_offsets WHERE cluster_id = %(cluster)s) ORDER BY cluster_id",
        {"cluster": cluster_id},
    )
    return tuple(str(name) for (name,) in rows)


def expired(connection: Connection, cluster_id: str, *, age: timedelta) -> tuple[str, ...]:
    """Groups without members and commits for `age`."""
    rows = connection.execute(
        "SELECT group_id FROM group_offsets LEFT JOIN group_coordinators USING (cluster_id, group_id)"
        " WHERE cluster_id = %s GROUP BY group_id"
        " HAVING greatest(max(committed_at), max(used_at)) < now() - %s::interval ORDER BY group_id",
        (cluster_id, age),
    )
    return tuple(str(group_id) for (group_id,) in rows)


def expire(connection: Connection, cluster_id: str, group_id: str, *, age: timedelta, claim: GroupClaim) -> int:
    """If the group is still expired. Raises CoordinatorDeposed if `claim` doesn't hold."""
    kept = group_coordinators.check(connection, group_id, claim)
    count = connection.execute(
        "DELETE FROM group_offsets WHERE cluster_id = %(cluster)s AND group_id = %(group)s"
        " AND now() - %(age)s::interval > ALL (SELECT committed_at FROM group_offsets"
        " WHERE cluster_id = %(cluster)s AND group_id = %(group)s UNION ALL SELECT used_at FROM group_coordinators"
        " WHERE cluster_id = %(cluster)s AND group_id = %(group)s)",
        {"cluster": cluster_id, "group": group_id, "age": age},
    ).rowcount
    if count and kept.owner:
        group_coordinators.note(connection, cluster_id, group_id, KeptOffsets(kept.owner, 0))
    return count


def _keep_within(
    connection: Connection,
    cluster_id: str,
    group_id: str,
    offsets: Mapping[Place, GroupOffset],
    *,
    kept: KeptOffsets,
    budget: OffsetBudget,
) -> None:
    before = _sizes(connection, cluster_id, group_id, offsets)
    grows = sum(_size(group_id, key, offset) - before.get(key, 0) for key, offset in offsets.items())
    if not grows:
        return
    own = kept.bytes if kept.owner else _taken(connection, cluster_id, group_id)
    after = KeptOffsets(budget.owner if grows > 0 else kept.owner, own + grows)
    if grows > 0:
        group_coordinators.keep_within(connection, cluster_id, group_id, after, budget)
    elif kept.owner:
        group_coordinators.note(connection, cluster_id, group_id, after)


def _size(group_id: str, place: Place, offset: GroupOffset) -> int:
    return _ROW_BYTES + 2 * (len(group_id.encode()) + len(place[0].encode())) + len(offset.metadata.encode())


def _sizes(connection: Connection, cluster_id: str, group_id: str, places: Iterable[Place]) -> dict[Place, int]:
    topics, partitions = zip(*places, strict=True)
    rows = connection.execute(
        f"SELECT topic, partition, {_SIZE} FROM group_offsets"  # noqa: S608 - no input
        " JOIN unnest(%s::text[], %s::integer[]) AS wanted (topic, partition) USING (topic, partition)"
        " WHERE cluster_id = %s AND group_id = %s",
        (list(topics), list(partitions), cluster_id, group_id),
    )
    return {(topic, partition): size for topic, partition, size in rows}


def _taken(connection: Connection, cluster_id: str, group_id: str) -> int:
    row = connection.execute(
        f"SELECT coalesce(sum({_SIZE}), 0)::bigint FROM group_offsets WHERE cluster_id = %s AND group_id = %s",  # noqa: S608 - no input
        (cluster_id, group_id),
    ).fetchone()
    return 0 if row is None else int(row[0])
