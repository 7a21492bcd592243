"""The nodes of a view. Each node spreads partitions and groups alike, by rendezvous hashing."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from uuid import UUID

_MOST_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddress:
    """`node_id` None: assigned."""

    host: str
    port: int
    node_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Node:
    """`host` and `port` are for clients."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """A view's live nodes, by id.

    `is_settled`: each node knows the view, and has released the groups of other nodes.
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
