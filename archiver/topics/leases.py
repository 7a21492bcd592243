"""The leases of topics: one archiver at a time per topic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from catalog.model import TopicRow
from catalog.registry.leases import Leases

LEASE_WAIT_SECONDS: Final = 4.0
"""How long a run waits in all: the server may take so long to notice that a predecessor was killed."""

_PAUSE_SECONDS: Final = 1.0


class TopicLeases:
    """All topics of a run share the waiting time."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._left = LEASE_WAIT_SECONDS

    def take(self, topics: Sequence[TopicRow]) -> frozenset[str]:
        """Return the names of topics that another archiver holds."""
        busy = self._leases.take(topics)
        while busy and self._left > 0:
            time.sleep(_PAUSE_SECONDS)
            self._left -= _PAUSE_SECONDS
            busy = self._leases.take(busy)
        return frozenset(topic.topic for topic in busy)
