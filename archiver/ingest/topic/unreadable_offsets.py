"""Offsets that leaders can't give, and how partitions continue after them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from archiver.ingest.topic.acceptance import UNREADABLE
from archiver.kafka.broker import BrokerClient
from archiver.kafka.fetch import PartitionFetcher
from archiver.kafka.unreadable import next_readable, unreadable
from archiver.topics.seen_partition import SeenPartition
from catalog.offset_range import OffsetRange
from schema_mapping.errors import ContextError


class UnreadableOffsets:
    """For partitions whose last task met some. `accepts` skips them."""

    def __init__(self, topic: str, topic_id: UUID | None, brokers: BrokerClient, *, accepts: bool) -> None:
        self._topic = topic
        self._topic_id = topic_id
        self._brokers = brokers
        self._accepts = accepts
        self._suspected: set[int] = set()

    def note(self, partition: int, error: ContextError | None) -> None:
        if self._accepts and isinstance(error, UNREADABLE):
            self._suspected.add(partition)

    def spans(self, partitions: Iterable[SeenPartition]) -> tuple[dict[int, OffsetRange], dict[int, ContextError]]:
        """Next unreadable offsets, and errors of stopped partitions.

        Partitions are fetched again first: readable offsets are no loss.
        """
        spans: dict[int, OffsetRange] = {}
        refused: dict[int, ContextError] = {}
        for seen in partitions:
            offset = seen.next_offset
            if seen.partition not in self._suspected or seen.gap is not None or offset >= seen.last_stable:
                continue
            log = PartitionFetcher(self._brokers, self._topic, self._topic_id, seen.partition)
            try:
                if unreadable(log, offset) is not None:
                    end = next_readable(log, offset, topic=self._topic, partition=seen.partition)
                    spans[seen.partition] = OffsetRange.half_open(seen.partition, offset, end)
            except ContextError as error:
                refused[seen.partition] = error
        self._suspected.clear()
        return spans, refused
