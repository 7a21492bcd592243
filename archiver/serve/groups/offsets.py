"""Committed offsets of groups, kept in the registry: they outlive the server and its members."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from threading import Lock
from typing import Protocol, TypeAlias

from catalog.registry import GroupClaim, GroupOffset, OffsetBudget, Registry

CommittedOffsets: TypeAlias = Mapping[tuple[str, int], GroupOffset]
"""Offsets by topic and partition."""


class GroupOffsetStore(Protocol):
    """Keeps the offsets of groups. Slow: call it in a worker's thread.

    `claim` is the claim of the node that coordinates the group, None if it has none.
    """

    def commit(
        self, group_id: str, offsets: CommittedOffsets, budget: OffsetBudget, *, claim: GroupClaim | None
    ) -> None:
        """Keep offsets; they are safe when this returns. OffsetBudgetReached if they take more than `budget` leaves."""

    def load(self, group_id: str) -> CommittedOffsets:
        """All offsets of a group."""

    def delete(
        self, group_id: str, partitions: Collection[tuple[str, int]] | None = None, *, claim: GroupClaim | None
    ) -> int:
        """Delete a group's offsets, or the offsets of some partitions. Return how many there were."""

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""

    def use(self, groups: Collection[str]) -> None:
        """Note that groups have members."""

    def expired(self, age: float) -> tuple[str, ...]:
        """Return the groups with offsets that had no members and no commit for this many seconds."""

    def expire(self, group_id: str, age: float, *, claim: GroupClaim | None) -> int:
        """Forget the offsets of such a group; return how many there were."""


class RegistryOffsets:
    """Offsets of one cluster's groups in the registry, read without a claim. It is opened when it is first needed."""

    def __init__(self, dsn: str, cluster_id: str, *, answers_within: float) -> None:
        """A call fails after `answers_within` seconds without an answer, also if the network says nothing."""
        self._dsn = dsn
        self._cluster_id = cluster_id
        self._answers_within = answers_within
        self._lock = Lock()
        self._registry: Registry | None = None

    def load(self, group_id: str) -> CommittedOffsets:
        """All offsets of a group."""
        return self._opened().group_offsets.load(self._cluster_id, group_id)

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""
        return self._opened().group_offsets.groups(self._cluster_id)

    def use(self, groups: Collection[str]) -> None:
        """Note that groups have members."""
        self._opened().group_offsets.use(self._cluster_id, groups)

    def expired(self, age: float) -> tuple[str, ...]:
        """Return the groups with offsets that had no members and no commit for this many seconds."""
        return self._opened().group_offsets.expired(self._cluster_id, age=timedelta(seconds=age))

    def close(self) -> None:
        """Close the registry."""
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None

    def _opened(self) -> Registry:
        with self._lock:
            if self._registry is None:
                self._registry = Registry(self._dsn, answers_within=self._answers_within)
            return self._registry
