"""Offsets that one consumer set aside and committed: in memory, as an archive keeps no groups."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicPartition

from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.partitions import NO_OFFSET, Place, check_list, failure, place_of


class OffsetStore:
    """Stored and committed offsets by partition."""

    def __init__(self) -> None:
        self._stored: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}

    def store(self, *, message: ReplayMessage | None, offsets: list[TopicPartition] | None) -> None:
        """Set offsets aside for a commit that names none."""
        self._stored.update(_given(message, offsets) or {})

    def commit(
        self,
        *,
        message: ReplayMessage | None,
        offsets: list[TopicPartition] | None,
        current: Mapping[Place, int],
    ) -> list[TopicPartition]:
        """Commit what is given, else what was stored, else `current`; KafkaException where there is nothing."""
        given = _given(message, offsets)
        if given is None:
            given = {**current, **self._stored}
            self._stored.clear()
        if not given:
            raise failure(NO_OFFSET, "nothing was consumed or stored that could be committed")
        self._committed.update(given)
        return [TopicPartition(*place, offset) for place, offset in given.items()]

    def committed(self, place: Place) -> int | None:
        """Return the committed offset, None where there is none."""
        return self._committed.get(place)


def _given(message: ReplayMessage | None, offsets: list[TopicPartition] | None) -> dict[Place, int] | None:
    if message is not None and offsets is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if message is not None:
        return {(message.topic(), message.partition()): message.offset() + 1}
    if offsets is None:
        return None
    check_list(offsets)
    return {place_of(one): one.offset for one in offsets}
