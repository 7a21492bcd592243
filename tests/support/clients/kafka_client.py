"""What every client is made to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.support.archive.readers import Seen

IDLE_MS = 12_000
"""How long a member waits for a record before it leaves: longer than a rebalance takes."""


class KafkaClient(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        """Return all records, or from a timestamp (ms) on, by partition and offset."""
        ...

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        """Return partitions and offsets that one group member reads and commits, at most `count`."""
        ...
