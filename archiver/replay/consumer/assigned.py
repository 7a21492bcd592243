"""What a consumer is told to read: partitions as confluent_kafka names them, checked, and placed where they start."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from archiver.replay.consumer.assignment import Assignment, PartitionState
from archiver.replay.consumer.delivery import Delivery
from archiver.replay.consumer.offset_store import OffsetStore
from archiver.replay.consumer.open_archives import OpenArchives
from archiver.replay.consumer.options import OffsetReset
from archiver.replay.consumer.partitions import CONFLICT, INVALID_ARG, UNKNOWN_PARTITION, check_list, failure, place_of
from archiver.replay.consumer.starting import starting_offset


class AssignedPartitions:
    """Changes an assignment as a consumer's methods ask; raises what these raise."""

    def __init__(
        self,
        assignment: Assignment,
        delivery: Delivery,
        *,
        archives: OpenArchives,
        offsets: OffsetStore,
        reset: OffsetReset,
    ) -> None:
        self._assignment = assignment
        self._delivery = delivery
        self._archives = archives
        self._offsets = offsets
        self._reset = reset

    def replace(self, partitions: list[TopicPartition]) -> None:
        """Assign these and no others."""
        check_list(partitions)
        places = [place_of(one) for one in partitions]
        if len(set(places)) != len(places):
            raise failure(INVALID_ARG, "the same partition is assigned twice")
        states = [self._state(one) for one in partitions]
        self.clear()
        for state in states:
            self._assignment.add(state)

    def add(self, partitions: list[TopicPartition]) -> None:
        """Assign these too."""
        check_list(partitions)
        for one in partitions:
            if place_of(one) in self._assignment:
                raise failure(CONFLICT, f"{one.topic} [{one.partition}] is already assigned")
        for state in [self._state(one) for one in partitions]:
            self._assignment.add(state)

    def remove(self, partitions: list[TopicPartition]) -> None:
        """Assign these no more."""
        check_list(partitions)
        for state in [self._assigned(one) for one in partitions]:
            self._assignment.remove(state.place)
            self._delivery.forget(state.place)

    def clear(self) -> None:
        """Assign none."""
        self._assignment.clear()
        self._delivery.clear()

    def set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        """Pause these, or resume them."""
        check_list(partitions)
        for state in [self._assigned(one) for one in partitions]:
            state.is_paused = paused

    def seek(self, partition: TopicPartition) -> None:
        """Go on with this one from another offset."""
        state = self._assigned(partition)
        self._delivery.forget(state.place)
        state.move(self._state(partition).position)

    def _assigned(self, one: TopicPartition) -> PartitionState:
        state = self._assignment.find(place_of(one))
        if state is None:
            raise failure(UNKNOWN_PARTITION, f"{one.topic} [{one.partition}] is not assigned")
        return state

    def _state(self, one: TopicPartition) -> PartitionState:
        archive = self._archives.of(one.topic)
        committed = self._offsets.committed(place_of(one))
        start = starting_offset(archive, one, committed=committed, reset=self._reset)
        return PartitionState(archive, one.partition, start)
