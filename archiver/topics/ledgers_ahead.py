"""Read the ledgers of many topics ahead: usually nothing has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.ledger_rows import SeenLedger
from schema_mapping.errors import ContextError

TOGETHER: Final = 16
"""How many ledgers are read at once. One with a thousand columns takes a megabyte."""


class LedgersAhead:
    def __init__(self, registry: Registry, topics: Sequence[TopicRow]) -> None:
        self._registry = registry
        self._topics = tuple(topics)
        self._groups = {topic.id: index // TOGETHER for index, topic in enumerate(topics)}
        self._group = -1
        self._seen: dict[int, SeenLedger] = {}

    def take(self, topic: TopicRow) -> SeenLedger | None:
        """None if it wasn't read: reading it alone then gives its topic's error."""
        group = self._groups.get(topic.id)
        if group is not None and group != self._group:
            self._group = group
            self._seen = self._read(self._topics[group * TOGETHER : (group + 1) * TOGETHER])
        return self._seen.pop(topic.id, None)

    def _read(self, some: Sequence[TopicRow]) -> dict[int, SeenLedger]:
        try:
            return self._registry.ledger.read_together(some)
        except ContextError:
            return {}
