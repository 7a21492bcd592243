"""The lag of groups, by offsets seen at this node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Final

from catalog.registry import GroupOffset

_MOST_PLACES: Final = 5_000
"""For so many partitions of groups the lag is told."""


class KnownOffsets:
    """The last seen offsets, for a bounded number of partitions. Thread-safe."""

    def __init__(self, most: int = _MOST_PLACES) -> None:
        self._most = most
        self._lock = Lock()
        self._groups: dict[str, dict[tuple[str, int], int]] = {}
        self._count = 0
        self.is_full = False

    def saw(self, group_id: str, offsets: Mapping[tuple[str, int], GroupOffset]) -> None:
        with self._lock:
            group = self._groups.setdefault(group_id, {})
            for partition, committed in offsets.items():
                if partition not in group:
                    if self._count >= self._most:
                        self.is_full = True
                        continue
                    self._count += 1
                group[partition] = committed.offset

    def forget(self, group_id: str) -> None:
        with self._lock:
            self._count -= len(self._groups.pop(group_id, ()))
            self.is_full = False

    def __iter__(self) -> Iterator[tuple[str, Mapping[tuple[str, int], int]]]:
        with self._lock:
            return iter([(group_id, dict(offsets)) for group_id, offsets in self._groups.items()])


class GroupLag:
    """Lags by group, topic and partition."""

    def __init__(self, known: KnownOffsets, end: Callable[[str, int], int | None]) -> None:
        """`end` returns a partition's next offset; None if unknown."""
        self._known = known
        self._end = end

    def __iter__(self) -> Iterator[tuple[str, str, int, int]]:
        for group_id, offsets in self._known:
            for (topic, partition), offset in offsets.items():
                end = self._end(topic, partition)
                if end is not None:
                    yield group_id, topic, partition, max(0, end - offset)
