"""Which node coordinates a group, and since which view: the fence before offsets that a deposed coordinator commits."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import CoordinatorDeposed
from catalog.registry.postgres import Connection

_KEPT_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClaim:
    """A node's right to commit offsets of a group, until another node claims it in a later view."""

    cluster_id: str
    node_id: int
    epoch: int


def claim(connection: Connection, group_id: str, wanted: GroupClaim) -> bool:
    """Take a group over. Commits of those before are safe or refused when this returns. False where a later one did."""
    found = connection.execute(
        "INSERT INTO group_coordinators AS old (cluster_id, group_id, epoch, node_id) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (cluster_id, group_id) DO UPDATE SET epoch = excluded.epoch, node_id = excluded.node_id,"
        " claimed_at = now() WHERE old.epoch < excluded.epoch"
        " OR (old.epoch = excluded.epoch AND old.node_id = excluded.node_id) RETURNING 1",
        (wanted.cluster_id, group_id, wanted.epoch, wanted.node_id),
    ).fetchone()
    return found is not None


def check(connection: Connection, group_id: str, held: GroupClaim) -> None:
    """Raise CoordinatorDeposed unless the claim holds. Nobody else claims the group until the transaction ends."""
    found = connection.execute(
        "SELECT epoch, node_id FROM group_coordinators WHERE cluster_id = %s AND group_id = %s FOR SHARE",
        (held.cluster_id, group_id),
    ).fetchone()
    if found != (held.epoch, held.node_id):
        raise CoordinatorDeposed(
            "another node coordinates the group, or the claim on it was forgotten: it has to be claimed again",
            group=group_id,
            node=held.node_id,
            epoch=held.epoch,
        )


def forget_old(connection: Connection) -> int:
    """Forget claims on groups without offsets that are older than a week. Return how many there were."""
    return connection.execute(
        "DELETE FROM group_coordinators AS old WHERE claimed_at < now() - make_interval(days => %s)"
        " AND NOT EXISTS (SELECT FROM group_offsets WHERE group_offsets.group_id = old.group_id)",
        (_KEPT_DAYS,),
    ).rowcount
