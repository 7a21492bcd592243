"""How many bytes of the log an offset takes, partition by partition: an estimate that gets better as tasks end."""

from __future__ import annotations

from typing import Final

DEFAULT_BYTES: Final = 1024.0
"""Assumed of an offset while nothing is known of a topic."""

LEAST_OFFSETS: Final = 100
"""A range of fewer offsets says little about the others."""


class Density:
    """What is known of a topic's partitions. Later knowledge replaces earlier."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, float] = {}

    def learn(self, partition: int, *, offsets: int, size: int) -> None:
        """Note that so many offsets took so many bytes."""
        if offsets >= LEAST_OFFSETS:
            self._known[partition] = size / offsets

    def lacks(self, partition: int) -> bool:
        """Whether nothing is known of the partition itself."""
        return partition not in self._known

    def of(self, partition: int) -> float:
        """Bytes per offset: the partition's, else what the topic's partitions have on average, else a guess."""
        if partition in self._known:
            return self._known[partition]
        return sum(self._known.values()) / len(self._known) if self._known else DEFAULT_BYTES
