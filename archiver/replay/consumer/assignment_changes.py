"""Changes of the assignment, as in confluent_kafka's consumer."""

from __future__ import annotations

from typing import assert_never

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, TopicPartition

from archiver.archive.topic_archive import TopicArchive
from archiver.replay.consumer.assignment import AssignedReaders
from archiver.replay.consumer.confluent_types import (
    AUTO_OFFSET_RESET,
    CONFLICT,
    INVALID_ARG,
    UNKNOWN_PARTITION,
    check_list,
    failure,
    partition_id,
)
from archiver.replay.consumer.offset_store import OffsetStore
from archiver.replay.consumer.open_archives import OpenArchives
from archiver.replay.consumer.options import OffsetReset
from archiver.replay.consumer.partition_reader import PartitionReader
from archiver.replay.consumer.poll_loop import PollLoop


class AssignmentChanges:
    """Raises the errors of the consumer's methods."""

    def __init__(
        self,
        assignment: AssignedReaders,
        poll_loop: PollLoop,
        *,
        archives: OpenArchives,
        offsets: OffsetStore,
        reset: OffsetReset,
    ) -> None:
        self._assignment = assignment
        self._poll_loop = poll_loop
        self._archives = archives
        self._offsets = offsets
        self._reset = reset

    def replace(self, partitions: list[TopicPartition]) -> None:
        check_list(partitions)
        ids = [partition_id(partition) for partition in partitions]
        if len(set(ids)) != len(ids):
            raise failure(INVALID_ARG, "the same partition is assigned twice")
        readers = [self._reader(partition) for partition in partitions]
        self.clear()
        for reader in readers:
            self._assignment.add(reader)

    def add(self, partitions: list[TopicPartition]) -> None:
        check_list(partitions)
        for partition in partitions:
            if partition_id(partition) in self._assignment:
                raise failure(CONFLICT, f"{partition.topic} [{partition.partition}] is already assigned")
        for reader in [self._reader(partition) for partition in partitions]:
            self._assignment.add(reader)

    def remove(self, partitions: list[TopicPartition]) -> None:
        check_list(partitions)
        for reader in [self._assigned(partition) for partition in partitions]:
            self._assignment.remove(reader.partition_id)
            self._poll_loop.forget_events_of(reader.partition_id)

    def clear(self) -> None:
        self._assignment.clear()
        self._poll_loop.forget_events()

    def set_paused(self, partitions: list[TopicPartition], *, paused: bool) -> None:
        check_list(partitions)
        for reader in [self._assigned(partition) for partition in partitions]:
            reader.is_paused = paused

    def seek(self, partition: TopicPartition) -> None:
        reader = self._assigned(partition)
        self._poll_loop.forget_events_of(reader.partition_id)
        reader.seek(self._reader(partition).position)

    def _assigned(self, one: TopicPartition) -> PartitionReader:
        reader = self._assignment.find(partition_id(one))
        if reader is None:
            raise failure(UNKNOWN_PARTITION, f"{one.topic} [{one.partition}] is not assigned")
        return reader

    def _reader(self, one: TopicPartition) -> PartitionReader:
        archive = self._archives.of(one.topic)
        committed = self._offsets.committed(partition_id(one))
        start = _start_offset(archive, one, committed=committed, reset=self._reset)
        return PartitionReader(archive, one.partition, start, reset=self._reset)


def _start_offset(archive: TopicArchive, one: TopicPartition, *, committed: int | None, reset: OffsetReset) -> int:
    """Offsets before the first follow `reset`; offsets after the last are kept. Raises KafkaException."""
    offset: int = one.offset
    if offset in (OFFSET_STORED, OFFSET_INVALID):
        if committed is None:
            return _reset_offset(archive, one, reset)
        offset = committed
    if offset == OFFSET_BEGINNING:
        return archive.first_offset(one.partition)
    if offset == OFFSET_END:
        return archive.end(one.partition)
    if offset < 0:
        raise failure(INVALID_ARG, f"{offset} is no offset of {one.topic} [{one.partition}]")
    if reset is not OffsetReset.EARLIEST and offset < archive.watermarks(one.partition)[0]:
        return _reset_offset(archive, one, reset)
    return offset


def _reset_offset(archive: TopicArchive, one: TopicPartition, reset: OffsetReset) -> int:
    match reset:
        case OffsetReset.EARLIEST:
            return archive.first_offset(one.partition)
        case OffsetReset.LATEST:
            return archive.end(one.partition)
        case OffsetReset.ERROR:
            raise failure(
                AUTO_OFFSET_RESET,
                f"{one.topic} [{one.partition}] has no committed offset, or one that isn't archived, or was retired",
            )
        case _:
            assert_never(reset)
