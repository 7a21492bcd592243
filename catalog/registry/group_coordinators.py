"""Which node coordinates a group since which view: the fence against deposed coordinators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from catalog.errors import CoordinatorDeposed, OffsetBudgetReached
from catalog.registry.postgres import Connection

_LEFT_FOR = timedelta(hours=1)
"""How old a claim of a node that is gone is when it is forgotten: none is made under its id at the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClaim:
    """A node's right to commit a group's offsets, until another node claims it in a later view."""

    cluster_id: str
    node_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetBudget:
    """An owner's limits in a cluster: groups with offsets, and their bytes."""

    owner: str
    groups: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KeptOffsets:
    """The owner last made a group's offsets grow. `bytes` is approximate."""

    owner: str
    bytes: int


class ClaimOutcome(Enum):
    """The result of a claim."""

    TAKEN = "the node coordinates the group"
    REFUSED = "another node claimed it in this view or a later one"
    UNUSED = "there is nothing to coordinate: no claim and no offsets"


def claim(connection: Connection, group_id: str, wanted: GroupClaim, *, makes: bool = True) -> ClaimOutcome:
    """Earlier commits are stored or refused when this returns. Without `makes`, unknown groups aren't begun."""
    values = {
        "cluster": wanted.cluster_id,
        "group": group_id,
        "epoch": wanted.epoch,
        "node": wanted.node_id,
        "makes": makes,
    }
    taken = connection.execute(
        "INSERT INTO group_coordinators AS old (cluster_id, group_id, epoch, node_id)"
        " SELECT %(cluster)s, %(group)s, %(epoch)s, %(node)s"
        " WHERE %(makes)s"
        " OR EXISTS (SELECT FROM group_coordinators WHERE cluster_id = %(cluster)s AND group_id = %(group)s)"
        " OR EXISTS (SELECT FROM group_offsets WHERE cluster_id IN (%(cluster)s, '') AND group_id = %(group)s)"
        " ON CONFLICT (cluster_id, group_id) DO UPDATE SET epoch = excluded.epoch, node_id = excluded.node_id,"
        " claimed_at = now() WHERE old.epoch < excluded.epoch"
        " OR (old.epoch = excluded.epoch AND old.node_id = excluded.node_id) RETURNING 1",
        values,
    ).fetchone()
    if taken is None:
        row = connection.execute(
            "SELECT 1 FROM group_coordinators WHERE cluster_id = %(cluster)s AND group_id = %(group)s", values
        ).fetchone()
        return ClaimOutcome.UNUSED if row is None and not makes else ClaimOutcome.REFUSED
    connection.execute(
        "WITH unowned AS (DELETE FROM group_offsets WHERE cluster_id = '' AND group_id = %(group)s"
        " RETURNING topic, partition, topic_id, next_offset, leader_epoch, metadata, committed_at)"
        " INSERT INTO group_offsets (cluster_id, group_id, topic, partition, topic_id, next_offset, leader_epoch,"
        " metadata, committed_at) SELECT %(cluster)s, %(group)s, unowned.* FROM unowned ON CONFLICT DO NOTHING",
        values,
    )
    return ClaimOutcome.TAKEN


def check(connection: Connection, group_id: str, held: GroupClaim) -> KeptOffsets:
    """Raise CoordinatorDeposed unless the claim holds. No claim succeeds until the transaction ends."""
    row = connection.execute(
        "SELECT epoch, node_id, owner, offset_bytes FROM group_coordinators WHERE cluster_id = %s AND group_id = %s"
        " FOR NO KEY UPDATE",
        (held.cluster_id, group_id),
    ).fetchone()
    if row is None or row[:2] != (held.epoch, held.node_id):
        raise CoordinatorDeposed(
            "another node coordinates the group, or the claim on it was forgotten: it has to be claimed again",
            group=group_id,
            node=held.node_id,
            epoch=held.epoch,
        )
    return KeptOffsets(*row[2:])


def keep_within(
    connection: Connection, cluster_id: str, group_id: str, kept: KeptOffsets, budget: OffsetBudget
) -> None:
    """Raises OffsetBudgetReached beyond the budget."""
    groups, total = connection.execute(
        "SELECT count(*), coalesce(sum(offset_bytes), 0)::bigint FROM group_coordinators"
        " WHERE cluster_id = %s AND owner = %s AND owner <> '' AND offset_bytes > 0 AND group_id <> %s",
        (cluster_id, budget.owner, group_id),
    ).fetchone() or (0, 0)
    if groups + 1 > budget.groups or total + kept.bytes > budget.bytes:
        raise OffsetBudgetReached(
            "the client's groups keep as many offsets as they may. Delete groups that it doesn't use (archiver groups"
            " delete), or give its principal more with `offset_groups` and `offset_size` in [[serve.quotas]]",
            owner=budget.owner,
            group=group_id,
            groups=groups + 1,
            most_groups=budget.groups,
            bytes=total + kept.bytes,
            most_bytes=budget.bytes,
        )
    note(connection, cluster_id, group_id, kept)


def note(connection: Connection, cluster_id: str, group_id: str, kept: KeptOffsets) -> None:
    connection.execute(
        "UPDATE group_coordinators SET owner = %s, offset_bytes = %s WHERE cluster_id = %s AND group_id = %s",
        (kept.owner, kept.bytes, cluster_id, group_id),
    )


def release(connection: Connection, cluster_id: str, groups: Collection[str], *, node_id: int) -> int:
    """Claims on groups with offsets stay."""
    return connection.execute(
        "DELETE FROM group_coordinators AS old WHERE cluster_id = %s AND node_id = %s AND group_id = ANY(%s)"
        " AND NOT EXISTS (SELECT FROM group_offsets WHERE group_offsets.cluster_id = old.cluster_id"
        " AND group_offsets.group_id = old.group_id)",
        (cluster_id, node_id, list(groups)),
    ).rowcount


def forget_left(connection: Connection, cluster_id: str, *, node_id: int) -> int:
    """Of dead nodes, and of earlier runs of `node_id`. Claims on groups with offsets stay."""
    return connection.execute(
        "DELETE FROM group_coordinators AS old WHERE cluster_id = %(cluster)s"
        " AND NOT EXISTS (SELECT FROM group_offsets WHERE group_offsets.cluster_id = old.cluster_id"
        " AND group_offsets.group_id = old.group_id)"
        " AND (node_id = %(node)s OR (claimed_at < now() - %(age)s::interval AND NOT EXISTS (SELECT FROM serve_nodes"
        " WHERE serve_nodes.cluster_id = old.cluster_id AND serve_nodes.node_id = old.node_id AND is_live)))",
        {"cluster": cluster_id, "node": node_id, "age": _LEFT_FOR},
    ).rowcount


def use(connection: Connection, cluster_id: str, groups: Collection[str]) -> None:
    connection.execute(
        "UPDATE group_coordinators SET used_at = now() WHERE cluster_id = %s AND group_id = ANY(%s)",
        (cluster_id, list(groups)),
    )
