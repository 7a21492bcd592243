"""Committed offsets in the registry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from threading import Lock
from typing import Protocol, TypeAlias

from catalog.registry import GroupClaim, GroupOffset, OffsetBudget, Registry

CommittedOffsets: TypeAlias = Mapping[tuple[str, int], GroupOffset]
"""Offsets by topic and partition."""


class GroupOffsetStore(Protocol):
    """Blocking: call it in a worker thread.

    `claim` is the coordinator's, None if it has none.
    """

    def commit(
        self, group_id: str, offsets: CommittedOffsets, budget: OffsetBudget, *, claim: GroupClaim | None
    ) -> None:
        """Store durably. Raises OffsetBudgetReached."""

    def load(self, group_id: str) -> CommittedOffsets: ...

    def delete(
        self, group_id: str, partitions: Collection[tuple[str, int]] | None = None, *, claim: GroupClaim | None
    ) -> int:
        """Return the number of deleted offsets."""

    def groups(self) -> tuple[str, ...]: ...

    def use(self, groups: Collection[str]) -> None: ...

    def expired(self, age: float) -> tuple[str, ...]:
        """Without members or commits for `age` seconds."""

    def expire(self, group_id: str, age: float, *, claim: GroupClaim | None) -> int:
        """Return the number of deleted offsets."""


class RegistryOffsets:
    """Read without a claim. Connects on first use."""

    def __init__(
        self, dsn: str, cluster_id: str, *, answers_within: float, connect: Callable[..., Registry] = Registry
    ) -> None:
        """A call fails after `answers_within` seconds without an answer."""
        self._dsn = dsn
        self._cluster_id = cluster_id
        self._answers_within = answers_within
        self._connect = connect
        self._lock = Lock()
        self._registry: Registry | None = None

    def load(self, group_id: str) -> CommittedOffsets:
        return self._opened().group_offsets.load(self._cluster_id, group_id)

    def groups(self) -> tuple[str, ...]:
        return self._opened().group_offsets.groups(self._cluster_id)

    def use(self, groups: Collection[str]) -> None:
        self._opened().group_offsets.use(self._cluster_id, groups)

    def expired(self, age: float) -> tuple[str, ...]:
        return self._opened().group_offsets.expired(self._cluster_id, age=timedelta(seconds=age))

    def close(self) -> None:
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None

    def _opened(self) -> Registry:
        with self._lock:
            if self._registry is None:
                self._registry = self._connect(self._dsn, answers_within=self._answers_within)
            return self._registry
