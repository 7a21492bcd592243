"""The nodes of `archiver serve kafka`, by the database's clock.

Each call is one statement without a transaction: a paused node holds no lock. A view number has one set of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from catalog.registry.postgres import Connection

_REUSED_AFTER = timedelta(hours=1)
"""How long the id of a node that went is kept for its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeNode:
    """A live node. `is_lost` if its heartbeat is overdue."""

    node_id: int
    host: str
    port: int
    incarnation: UUID
    seen_view: int = 0
    is_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeView:
    """All live nodes at one moment, by id."""

    number: int
    nodes: tuple[ServeNode, ...]


def propose(connection: Connection, cluster_id: str, *, host: str, port: int) -> int:
    """The address's earlier id, else the lowest free one, which may be taken before `join`."""
    connection.execute("INSERT INTO serve_clusters (cluster_id) VALUES (%s) ON CONFLICT DO NOTHING", (cluster_id,))
    rows = connection.execute(
        "SELECT node_id, host = %s AND port = %s, NOT is_live AND heartbeat_at < clock_timestamp() - %s::interval"
        " FROM serve_nodes WHERE cluster_id = %s ORDER BY node_id",
        (host, port, _REUSED_AFTER, cluster_id),
    ).fetchall()
    own = [node_id for node_id, is_own, _ in rows if is_own]
    if own:
        return int(own[0])
    taken = {node_id for node_id, _, is_free in rows if not is_free}
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def join(connection: Connection, cluster_id: str, node: ServeNode, *, lost_after: float) -> ServeNode | None:
    """If another run lives under the id, return it and do nothing."""
    connection.execute("INSERT INTO serve_clusters (cluster_id) VALUES (%s) ON CONFLICT DO NOTHING", (cluster_id,))
    joined = connection.execute(
        "WITH joined AS ("
        " INSERT INTO serve_nodes AS old (cluster_id, node_id, host, port, incarnation, is_live, heartbeat_at,"
        " lost_after, seen_view) VALUES (%(cluster)s, %(node)s, %(host)s, %(port)s, %(incarnation)s, true,"
        " clock_timestamp(), %(lost)s, 0)"
        " ON CONFLICT (cluster_id, node_id) DO UPDATE SET host = excluded.host, port = excluded.port,"
        " incarnation = excluded.incarnation, is_live = true, heartbeat_at = clock_timestamp(),"
        " lost_after = excluded.lost_after, seen_view = 0"
        " WHERE NOT old.is_live OR old.heartbeat_at + old.lost_after < clock_timestamp() RETURNING 1)"
        " UPDATE serve_clusters SET view = view + 1 WHERE cluster_id = %(cluster)s AND EXISTS (SELECT FROM joined)"
        " RETURNING view",
        {
            "cluster": cluster_id,
            "node": node.node_id,
            "host": node.host,
            "port": node.port,
            "incarnation": node.incarnation,
            "lost": timedelta(seconds=lost_after),
        },
    ).fetchone()
    if joined is not None:
        return None
    nodes = {node.node_id: node for node in view(connection, cluster_id).nodes}
    return nodes.get(node.node_id, node)


def beat(
    connection: Connection, cluster_id: str, *, node_id: int, incarnation: UUID, seen_view: int
) -> ServeView | None:
    """Store the seen view; return the current one, None if this run was given up."""
    alive = connection.execute(
        "UPDATE serve_nodes SET heartbeat_at = clock_timestamp(), seen_view = greatest(seen_view, %s)"
        " WHERE cluster_id = %s AND node_id = %s AND incarnation = %s AND is_live RETURNING 1",
        (seen_view, cluster_id, node_id, incarnation),
    ).fetchone()
    current = view(connection, cluster_id)
    is_in_it = any((node.node_id, node.incarnation) == (node_id, incarnation) for node in current.nodes)
    return current if alive is not None and is_in_it else None


def view(connection: Connection, cluster_id: str) -> ServeView:
    rows = connection.execute(
        "SELECT view, node_id, host, port, incarnation, seen_view, heartbeat_at + lost_after < clock_timestamp()"
        " FROM serve_clusters LEFT JOIN (SELECT * FROM serve_nodes WHERE is_live) AS live USING (cluster_id)"
        " WHERE cluster_id = %s ORDER BY node_id",
        (cluster_id,),
    ).fetchall()
    nodes = tuple(
        ServeNode(node_id=number, host=host, port=port, incarnation=run, seen_view=seen, is_lost=is_lost)
        for _, number, host, port, run, seen, is_lost in rows
        if number is not None
    )
    return ServeView(number=rows[0][0] if rows else 0, nodes=nodes)


def give_up_lost(connection: Connection, cluster_id: str) -> bool:
    row = connection.execute(
        "WITH gone AS (UPDATE serve_nodes SET is_live = false WHERE cluster_id = %(cluster)s AND is_live"
        " AND heartbeat_at + lost_after < clock_timestamp() RETURNING 1)"
        " UPDATE serve_clusters SET view = view + 1 WHERE cluster_id = %(cluster)s AND EXISTS (SELECT FROM gone)"
        " RETURNING view",
        {"cluster": cluster_id},
    ).fetchone()
    return row is not None


def leave(connection: Connection, cluster_id: str, *, node_id: int, incarnation: UUID) -> None:
    """The id stays reserved for the address for a while."""
    connection.execute(
        "WITH gone AS (UPDATE serve_nodes SET is_live = false WHERE cluster_id = %(cluster)s AND node_id = %(node)s"
        " AND incarnation = %(incarnation)s AND is_live RETURNING 1)"
        " UPDATE serve_clusters SET view = view + 1 WHERE cluster_id = %(cluster)s AND EXISTS (SELECT FROM gone)",
        {"cluster": cluster_id, "node": node_id, "incarnation": incarnation},
    )


def others(connection: Connection, cluster_id: str) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT DISTINCT cluster_id FROM serve_nodes WHERE cluster_id <> %s AND is_live"
        " AND heartbeat_at + lost_after >= clock_timestamp() ORDER BY cluster_id",
        (cluster_id,),
    )
    return tuple(str(name) for (name,) in rows)
