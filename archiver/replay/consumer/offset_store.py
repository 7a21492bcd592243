"""The offsets that a consumer stored and committed, in memory only."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicPartition

from archiver.replay.consumer.confluent_types import NO_OFFSET, PartitionId, check_list, failure, partition_id
from archiver.replay.consumer.message import ReplayMessage


class OffsetStore:
    def __init__(self) -> None:
        self._stored: dict[PartitionId, int] = {}
        self._committed: dict[PartitionId, int] = {}

    def store(self, *, message: ReplayMessage | None, offsets: list[TopicPartition] | None) -> None:
        self._stored.update(_given(message, offsets) or {})

    def commit(
        self,
        *,
        message: ReplayMessage | None,
        offsets: list[TopicPartition] | None,
        current: Mapping[PartitionId, int],
    ) -> list[TopicPartition]:
        """Without `message` or `offsets`, `current` overridden by stored ones. Raises KafkaException if none."""
        given = _given(message, offsets)
        if given is None:
            given = {**current, **self._stored}
            self._stored.clear()
        if not given:
            raise failure(NO_OFFSET, "nothing was consumed or stored that could be committed")
        self._committed.update(given)
        return [TopicPartition(*partition, offset) for partition, offset in given.items()]

    def committed(self, partition: PartitionId) -> int | None:
        return self._committed.get(partition)


def _given(message: ReplayMessage | None, offsets: list[TopicPartition] | None) -> dict[PartitionId, int] | None:
    if message is not None and offsets is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if message is not None:
        return {(message.topic(), message.partition()): message.offset() + 1}
    if offsets is None:
        return None
    check_list(offsets)
    return {partition_id(offset): offset.offset for offset in offsets}
