"""A NodeStore in memory, with faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any
from uuid import UUID

from catalog.errors import RegistryUnreachable
from catalog.registry import ClaimOutcome, GroupClaim, ServeNode, ServeView


class NodesInMemory:
    """`is_away` makes every call fail."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.is_away = False
        self.claims: dict[str, GroupClaim] = {}
        self.with_offsets: set[str] = set()
        self.view = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._live: dict[int, ServeNode] = {}
        self._beats: dict[int, tuple[float, float]] = {}
        self._ids: dict[tuple[str, int], int] = {}

    def propose(self, *, host: str, port: int) -> int:
        with self._there():
            return self._ids.get((host, port), len(self._ids) + 1)

    def join(self, node: ServeNode, *, lost_after: float) -> ServeNode | None:
        with self._there():
            holder = self._live.get(node.node_id)
            if holder is not None and not self._is_lost(node.node_id):
                return holder
            self._live[node.node_id] = node
            self._beats[node.node_id] = self._clock(), lost_after
            self._ids[node.host, node.port] = node.node_id
            self.view += 1
            return None

    def beat(self, node: ServeNode, *, seen_view: int) -> ServeView | None:
        with self._there():
            existing = self._live.get(node.node_id)
            if existing is None or existing.incarnation != node.incarnation:
                return None
            self._live[node.node_id] = replace(existing, seen_view=max(existing.seen_view, seen_view))
            self._beats[node.node_id] = self._clock(), self._beats[node.node_id][1]
            return self._seen()

    def who_is_there(self) -> ServeView:
        with self._there():
            return self._seen()

    def give_up_lost(self) -> bool:
        with self._there():
            lost = [item for item in self._live if self._is_lost(item)]
            for value in lost:
                del self._live[value]
            self.view += bool(lost)
            return bool(lost)

    def leave(self, node: ServeNode) -> None:
        with self._there():
            if self._incarnation(node.node_id) == node.incarnation:
                del self._live[node.node_id]
                self.view += 1

    def claim(self, group_id: str, *, node_id: int, epoch: int, makes: bool) -> GroupClaim | ClaimOutcome:
        with self._there():
            claim = GroupClaim(cluster_id="archive", node_id=node_id, epoch=epoch)
            kept = self.claims.get(group_id)
            if kept is not None and kept.epoch >= epoch and kept != claim:
                return ClaimOutcome.REFUSED
            if kept is None and not makes and group_id not in self.with_offsets:
                return ClaimOutcome.UNUSED
            self.claims[group_id] = claim
            return claim

    def release(self, groups: Collection[str], *, node_id: int) -> None:
        with self._there():
            for group in groups:
                kept = self.claims.get(group)
                if kept is not None and kept.node_id == node_id and group not in self.with_offsets:
                    del self.claims[group]

    def close(self) -> None:
        pass

    def _seen(self) -> ServeView:
        nodes = tuple(replace(self._live[value], is_lost=self._is_lost(value)) for value in sorted(self._live))
        return ServeView(number=self.view, nodes=nodes)

    def live(self) -> int:
        return len(self._live)

    def _incarnation(self, node_id: int) -> UUID | None:
        existing = self._live.get(node_id)
        return None if existing is None else existing.incarnation

    def _is_lost(self, node_id: int) -> bool:
        at, lost_after = self._beats[node_id]
        return self._clock() - at > lost_after

    def _there(self) -> threading.Lock:
        if self.is_away:
            raise RegistryUnreachable("the registry is away")
        return self._lock


class Line:
    """`is_away` isolates one node."""

    def __init__(self, store: NodesInMemory) -> None:
        self.is_away = False
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if self.is_away and name != "close":
            raise RegistryUnreachable("the registry is away from this node")
        return getattr(self._store, name)
