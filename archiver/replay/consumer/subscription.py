"""A subscription to archived topics, by name or pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_STORED, TopicPartition

from archiver.archive.tables import TableSource
from archiver.archive.topic_archive import TopicArchive
from archiver.replay.consumer.confluent_types import PartitionId, partition_id


@dataclass(slots=True)
class Subscription:
    topics: tuple[str, ...]
    on_assign: Callable[[Any, list[TopicPartition]], Any] | None
    on_revoke: Callable[[Any, list[TopicPartition]], Any] | None
    is_applied: bool = False
    _known: set[PartitionId] = field(default_factory=set)

    def extend(self, tables: TableSource, open_topic: Callable[[str], TopicArchive]) -> list[TopicPartition]:
        self.is_applied = True
        archives = [open_topic(topic) for topic in self._select(tables)]
        available = [(archive.topic, partition) for archive in archives for partition in archive.partitions]
        fresh = [TopicPartition(*candidate, OFFSET_STORED) for candidate in available if candidate not in self._known]
        self._known |= {partition_id(candidate) for candidate in fresh}
        return fresh

    def _select(self, tables: TableSource) -> list[str]:
        patterns = [re.compile(topic) for topic in self.topics if topic.startswith("^")]
        names = [topic for topic in self.topics if not topic.startswith("^")]
        matching = (
            [name for name in tables.topics() if any(pattern.search(name) for pattern in patterns)] if patterns else []
        )
        return list(dict.fromkeys(names + matching))
