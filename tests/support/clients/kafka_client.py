"""The interface of all clients."""

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
        """Records by partition and offset; `from_time` is in ms."""
        ...

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        """Return committed partitions and offsets, at most `count`."""
        ...
