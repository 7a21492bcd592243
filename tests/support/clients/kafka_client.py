"""What every client is asked to do, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.support.archive.readers import Seen

IDLE_MS = 12_000
"""How long a member waits for a record before it leaves: longer than a rebalance takes."""


class KafkaClient(Protocol):
    """A client that nobody here wrote."""

    @property
    def name(self) -> str:
        """As people call it."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        """All records of a topic, or those from the first one with this timestamp (ms) or a later one on.

        By partition and offset.
        """
        ...

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        """Partitions and offsets of what one member of a group reads and commits: `count` records, or what comes.

        With `protocol` the group is of that protocol.
        """
        ...
