"""What nodes of a cluster tell one another, through the registry of their configuration."""

from __future__ import annotations

import logging
from collections.abc import Collection
from threading import Lock
from typing import Protocol

from catalog.registry import ClaimOutcome, GroupClaim, Registry, ServeNode, ServeView

_LOG = logging.getLogger(__name__)


class NodeStore(Protocol):
    """The nodes' shared store. Slow: call it in a thread. Any call may raise the registry's errors."""

    def propose(self, *, host: str, port: int) -> int:
        """The id for a node at an address."""

    def join(self, node: ServeNode, *, lost_after: float) -> ServeNode | None:
        """Become a live node. Returns another live run with this id, if there is one."""

    def beat(self, node: ServeNode, *, seen_view: int) -> ServeView | None:
        """Send a heartbeat. None if other nodes gave this run up."""

    def give_up_lost(self) -> bool:
        """Give up nodes without a sign of life. Whether there were any."""

    def leave(self, node: ServeNode) -> None:
        """Go in order."""

    def who_is_there(self) -> ServeView:
        """The nodes, and the view that each knows."""

    def claim(self, group_id: str, *, node_id: int, epoch: int, makes: bool) -> GroupClaim | ClaimOutcome:
        """Take a group over; why that can't be otherwise. Without `makes`, a group that isn't known isn't begun."""

    def release(self, groups: Collection[str], *, node_id: int) -> None:
        """Give up claims on groups that have no offsets."""

    def close(self) -> None:
        """Give up connections."""


class RegistryNodes:
    """A NodeStore in the registry. It is opened when it is first needed."""

    def __init__(self, dsn: str, cluster_id: str, *, answers_within: float, connections: int = 3) -> None:
        self._dsn = dsn
        self._cluster_id = cluster_id
        self._answers_within = answers_within
        self._connections = connections
        self._lock = Lock()
        self._registry: Registry | None = None

    def propose(self, *, host: str, port: int) -> int:
        """The id for a node at an address."""
        return self._opened().serve_nodes.propose(self._cluster_id, host=host, port=port)

    def join(self, node: ServeNode, *, lost_after: float) -> ServeNode | None:
        """Become a live node."""
        registry = self._opened()
        holder = registry.serve_nodes.join(self._cluster_id, node, lost_after=lost_after)
        if holder is None:
            registry.group_offsets.forget_left(self._cluster_id, node_id=node.node_id)
            others = {
                *registry.serve_nodes.others(self._cluster_id),
                *registry.group_offsets.other_clusters(self._cluster_id),
            }
            self._warn_of(sorted(others))
        return holder

    def beat(self, node: ServeNode, *, seen_view: int) -> ServeView | None:
        """A sign of life."""
        return self._opened().serve_nodes.beat(
            self._cluster_id, node_id=node.node_id, incarnation=node.incarnation, seen_view=seen_view
        )

    def give_up_lost(self) -> bool:
        """Give up nodes without a sign of life."""
        return self._opened().serve_nodes.give_up_lost(self._cluster_id)

    def leave(self, node: ServeNode) -> None:
        """Go in order."""
        self._opened().serve_nodes.leave(self._cluster_id, node_id=node.node_id, incarnation=node.incarnation)

    def who_is_there(self) -> ServeView:
        """The nodes, and the view that each knows."""
        return self._opened().serve_nodes.view(self._cluster_id)

    def claim(self, group_id: str, *, node_id: int, epoch: int, makes: bool) -> GroupClaim | ClaimOutcome:
        """Take a group over."""
        claim = GroupClaim(cluster_id=self._cluster_id, node_id=node_id, epoch=epoch)
        owner = self._opened().group_offsets.claim(group_id, claim, makes=makes)
        return claim if owner is ClaimOutcome.TAKEN else owner

    def release(self, groups: Collection[str], *, node_id: int) -> None:
        """Give up claims on groups that have no offsets."""
        self._opened().group_offsets.release(self._cluster_id, groups, node_id=node_id)

    def close(self) -> None:
        """Close the registry."""
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
