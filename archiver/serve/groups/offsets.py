"""Committed offsets of groups, kept in the registry: they outlive the server and its members."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock
from typing import Protocol, TypeAlias

from catalog.registry import GroupOffset, Registry

CommittedOffsets: TypeAlias = Mapping[tuple[str, int], GroupOffset]
"""Offsets by topic and partition."""


class OffsetStore(Protocol):
    """Keeps the offsets of groups. Slow: call it in a worker's thread."""

    def commit(self, group_id: str, offsets: CommittedOffsets) -> None:
        """Keep offsets; they are safe when this returns."""

    def load(self, group_id: str) -> CommittedOffsets:
        """All offsets of a group."""

    def delete(self, group_id: str, places: Collection[tuple[str, int]] | None = None) -> int:
        """Forget a group's offsets, or those of some partitions; return how many there were."""

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""


class RegistryOffsets:
    """Offsets in the registry of a configuration. It is opened when it is first needed."""

    def __init__(self, dsn: str, *, answers_within: float) -> None:
        """A call fails after `answers_within` seconds without an answer, also if the network says nothing."""
        self._dsn = dsn
        self._answers_within = answers_within
        self._lock = Lock()
        self._registry: Registry | None = None

    def commit(self, group_id: str, offsets: CommittedOffsets) -> None:
        """Keep offsets."""
        self._opened().group_offsets.commit(group_id, offsets)

    def load(self, group_id: str) -> CommittedOffsets:
        """All offsets of a group."""
        return self._opened().group_offsets.load(group_id)

    def delete(self, group_id: str, places: Collection[tuple[str, int]] | None = None) -> int:
        """Forget offsets."""
        return self._opened().group_offsets.delete(group_id, places)

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""
        return self._opened().group_offsets.groups()

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
