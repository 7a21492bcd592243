"""The nodes of a view. Partitions and groups are spread over them by rendezvous hashing, the same on every node."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from uuid import UUID

_MOST_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddress:
    """The address for clients, and the configured node id; None: assigned."""

    host: str
    port: int
    node_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Node:
    """A node, with its address for clients."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The live nodes of a view, by id.

    `is_settled`: each node knows the view, and no longer coordinates groups that it gives to other nodes.
    """

    number: int
    nodes: tuple[Node, ...]
    is_settled: bool = False

    def leaders(self, topic_id: UUID, partition: int) -> tuple[Node, ...]:
        """The partition's leader comes first."""
        return self._ranked(b"partition" + topic_id.bytes + partition.to_bytes(4, "big", signed=True))[:_MOST_REPLICAS]

    def coordinator(self, group_id: str) -> Node:
        return self._ranked(b"group" + group_id.encode(errors="surrogatepass"))[0]

    def _ranked(self, key: bytes) -> tuple[Node, ...]:
        if len(self.nodes) == 1:
            return self.nodes
        return tuple(sorted(self.nodes, key=lambda node: _weight(node.node_id, key), reverse=True))


def _weight(node_id: int, key: bytes) -> bytes:
    return blake2b(key, digest_size=8, salt=node_id.to_bytes(8, "big")).digest()
