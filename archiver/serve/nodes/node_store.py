"""The registry calls of membership and claims."""

from __future__ import annotations

import logging
from collections.abc import Collection
from threading import Lock
from typing import Protocol

from catalog.registry import ClaimOutcome, GroupClaim, Registry, ServeNode, ServeView

_LOG = logging.getLogger(__name__)


class NodeStore(Protocol):
    """Blocking: call it in a thread. Any call may raise the registry's errors."""

    def propose(self, *, host: str, port: int) -> int: ...

    def join(self, node: ServeNode, *, lost_after: float) -> ServeNode | None:
        """Return another live run with this id, if any."""

    def beat(self, node: ServeNode, *, seen_view: int) -> ServeView | None:
        """None if other nodes gave this run up."""

    def give_up_lost(self) -> bool:
        """Return whether any node was lost."""

    def leave(self, node: ServeNode) -> None: ...

    def who_is_there(self) -> ServeView: ...

    def claim(self, group_id: str, *, node_id: int, epoch: int, makes: bool) -> GroupClaim | ClaimOutcome:
        """Without `makes`, an unknown group isn't created."""

    def release(self, groups: Collection[str], *, node_id: int) -> None: ...

    def close(self) -> None: ...


class RegistryNodes:
    """A NodeStore in the registry. Connects on first use."""

    def __init__(self, dsn: str, cluster_id: str, *, answers_within: float, connections: int = 3) -> None:
        self._dsn = dsn
        self._cluster_id = cluster_id
        self._answers_within = answers_within
        self._connections = connections
        self._lock = Lock()
        self._registry: Registry | None = None

    def propose(self, *, host: str, port: int) -> int:
        return self._opened().serve_nodes.propose(self._cluster_id, host=host, port=port)

    def join(self, node: ServeNode, *, lost_after: float) -> ServeNode | None:
        registry = self._opened()
        holder = registry.serve_nodes.join(self._cluster_id, node, lost_after=lost_after)
        if holder is None:
            registry.group_offsets.forget_left(self._cluster_id, node_id=node.node_id)
            clusters = {
                *registry.serve_nodes.others(self._cluster_id),
                *registry.group_offsets.other_clusters(self._cluster_id),
            }
            self._warn_of(sorted(clusters))
        return holder

    def beat(self, node: ServeNode, *, seen_view: int) -> ServeView | None:
        return self._opened().serve_nodes.beat(
            self._cluster_id, node_id=node.node_id, incarnation=node.incarnation, seen_view=seen_view
        )

    def give_up_lost(self) -> bool:
        return self._opened().serve_nodes.give_up_lost(self._cluster_id)

    def leave(self, node: ServeNode) -> None:
        self._opened().serve_nodes.leave(self._cluster_id, node_id=node.node_id, incarnation=node.incarnation)

    def who_is_there(self) -> ServeView:
        return self._opened().serve_nodes.view(self._cluster_id)

    def claim(self, group_id: str, *, node_id: int, epoch: int, makes: bool) -> GroupClaim | ClaimOutcome:
        claim = GroupClaim(cluster_id=self._cluster_id, node_id=node_id, epoch=epoch)
        owner = self._opened().group_offsets.claim(group_id, claim, makes=makes)
        return claim if owner is ClaimOutcome.TAKEN else owner

    def release(self, groups: Collection[str], *, node_id: int) -> None:
        self._opened().group_offsets.release(self._cluster_id, groups, node_id=node_id)

    def close(self) -> None:
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None

    def _warn_of(self, others: Collection[str]) -> None:
        if others:
            _LOG.warning(
                "this is cluster %s, and the registry also has nodes or offsets of %s. Each catalog is a cluster, with"
                " offsets of its own: if theirs is the same catalog at another address, set `serve.cluster_id` to the"
                " same id for all nodes",
                self._cluster_id,
                ", ".join(others),
            )

    def _opened(self) -> Registry:
        with self._lock:
            if self._registry is None:
                self._registry = Registry(self._dsn, connections=self._connections, answers_within=self._answers_within)
            return self._registry
