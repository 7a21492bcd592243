"""A consumer of archived topics with the methods of `confluent_kafka.Consumer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any, Self, TypeAlias

import pyarrow as pa
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from archiver.archive.records import RECORDS
from archiver.archive.tables import TableSource
from archiver.config import Config
from archiver.replay.consumer.assignment import AssignedReaders
from archiver.replay.consumer.assignment_changes import AssignmentChanges
from archiver.replay.consumer.confluent_types import (
    INVALID_ARG,
    UNKNOWN_GROUP,
    check_list,
    cluster_metadata,
    failure,
    or_invalid,
    partition_id,
)
from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.offset_store import OffsetStore
from archiver.replay.consumer.open_archives import OpenArchives, Refresher
from archiver.replay.consumer.options import ReplayOptions
from archiver.replay.consumer.partition_reader import PartitionReader
from archiver.replay.consumer.poll_loop import PollLoop
from archiver.replay.consumer.subscription import Subscription

MAX_MESSAGES = 1_000_000
Callback: TypeAlias = Callable[[Any, list[TopicPartition]], Any]


class ReplayConsumer:
    """Reads archived topics like a Kafka consumer. For one thread at a time.

    There are no groups. At the end of a partition it waits for the archive to grow. Errors of the archive
    (ArchiverError, CatalogError) are raised, never returned as messages; after a retryable one, the next poll
    continues.
    """

    def __init__(
        self, config: Config, options: Mapping[str, Any] | None = None, *, tables: TableSource | None = None
    ) -> None:
        """`options` as in ReplayOptions. `tables` replace the catalog in `config`."""
        self._options = ReplayOptions.parse(options or {})
        self._archives = OpenArchives(config, tables)
        self._executor = ThreadPoolExecutor(self._options.parallelism + 1, thread_name_prefix="replay")
        self._assignment = AssignedReaders(self._executor, self._options.parallelism)
        self._offsets = OffsetStore()
        self._subscription: Subscription | None = None
        self._refresher = Refresher(self._executor, self._options.refresh_seconds)
        self._poll_loop = PollLoop(
            self._assignment,
            self._refresher,
            reports_ends=self._options.partition_eof,
            prepare=self._apply_subscription,
            refresh=self._refresh,
        )
        self._changes = AssignmentChanges(
            self._assignment,
            self._poll_loop,
            archives=self._archives,
            offsets=self._offsets,
            reset=self._options.auto_offset_reset,
        )
        self._is_closed = False

    # --- assignment -------------------------------------------------------------------------------------------------

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Replace the assignment. Raises ReplayError if a topic has no archive.

        An offset is a number, OFFSET_BEGINNING, OFFSET_END, or OFFSET_STORED/OFFSET_INVALID: the offset that this
        consumer committed, else `auto.offset.reset`.
        """
        self._check_open()
        self._changes.replace(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self._check_open()
        self._changes.add(partitions)

    def unassign(self) -> None:
        self._check_open()
        self._changes.clear()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self._check_open()
        self._changes.remove(partitions)

    def assignment(self) -> list[TopicPartition]:
        """Offsets are the next ones to read."""
        self._check_open()
        return [TopicPartition(*reader.partition_id, reader.position) for reader in self._assignment]

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        on_lost: Callback | None = None,  # noqa: ARG002 - nothing is ever lost to another member
    ) -> None:
        """Read every partition of these topics, also later ones.

        A name that begins with `^` is a regular expression. The next poll makes the assignment and calls `on_assign`.
        `unsubscribe`, another `subscribe` and `close` call `on_revoke`. `on_lost` is never called. Raises TypeError
        unless `topics` is a list of names.
        """
        self._check_open()
        if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
            raise TypeError("requires a list of topic names")
        self.unsubscribe()
        self._subscription = Subscription(tuple(topics), on_assign, on_revoke)

    def unsubscribe(self) -> None:
        self._check_open()
        subscription, self._subscription = self._subscription, None
        if subscription is not None and subscription.on_revoke is not None and len(self._assignment):
            subscription.on_revoke(self, self.assignment())
        self.unassign()

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._check_open()
        self._changes.set_paused(partitions, paused=True)

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._check_open()
        self._changes.set_paused(partitions, paused=False)

    def seek(self, partition: TopicPartition) -> None:
        """The offset may be logical as in `assign`."""
        self._check_open()
        self._changes.seek(partition)

    # --- records ----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None = None) -> ReplayMessage | None:
        """Return the next record or event; None after `timeout` seconds (None or -1: no limit)."""
        message = self._poll_loop.next_of_batch()
        if message is not None:
            return message
        messages = self.consume(1, -1 if timeout is None else timeout)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[ReplayMessage]:
        """Return records and events, fewer after `timeout` seconds (-1: no limit).

        An error after some records is raised by the next call. Raises ValueError for more than a million messages.
        """
        self._check_open()
        if not 0 <= num_messages <= MAX_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        deadline = None if timeout < 0 else time.monotonic() + timeout
        return self._poll_loop.consume(num_messages, deadline)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rest of the assigned partitions, up to the present end, as Arrow batches of one partition.

        Columns: partition, offset, timestamp_type, timestamp (ms, -1: none), key, value, headers. The metadata has
        the topic.
        """
        self._check_open()
        self._apply_subscription()
        ends = {reader.partition_id: reader.end for reader in self._assignment}

        def wanted(reader: PartitionReader) -> bool:
            if reader.is_paused:
                return False
            return reader.batch is not None or reader.position < ends.get(reader.partition_id, 0)

        while any(wanted(reader) for reader in self._assignment):
            reader = self._assignment.next_ready(wanted)
            if reader is None:
                wait(self._assignment.running_reads(wanted), return_when=FIRST_COMPLETED)
                continue
            batch = reader.remaining()
            reader.advance(batch.num_rows)
            yield pa.RecordBatch.from_arrays(
                batch.columns[: len(RECORDS)], schema=RECORDS.with_metadata({"topic": reader.archive.topic})
            )

    # --- offsets ----------------------------------------------------------------------------------------------------

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return offsets after the last returned record, or OFFSET_INVALID."""
        self._check_open()
        check_list(partitions)
        readers = [self._assignment.find(partition_id(partition)) for partition in partitions]
        return [
            TopicPartition(asked.topic, asked.partition, or_invalid(reader.consumed if reader else None))
            for asked, reader in zip(partitions, readers, strict=True)
        ]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """Refreshes the table unless `cached`; `timeout` is ignored."""
        del timeout
        self._check_open()
        archive = self._archives.of(partition.topic)
        if not cached:
            archive.refresh()
        return archive.watermarks(partition.partition)

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """Return the first offset at or after the time `offset` (ms), or OFFSET_END."""
        del timeout
        self._check_open()
        check_list(partitions)
        offsets = [
            self._archives.of(partition.topic).offset_for_time(partition.partition, partition.offset)
            for partition in partitions
        ]
        return [
            TopicPartition(asked.topic, asked.partition, OFFSET_END if offset is None else offset)
            for asked, offset in zip(partitions, offsets, strict=True)
        ]

    def commit(
        self,
        message: ReplayMessage | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit in memory: given offsets, the one after `message`, or stored or consumed ones."""
        self._check_open()
        current = {reader.partition_id: reader.consumed for reader in self._assignment if reader.consumed is not None}
        committed = self._offsets.commit(message=message, offsets=offsets, current=current)
        return None if asynchronous else committed

    def store_offsets(self, message: ReplayMessage | None = None, offsets: list[TopicPartition] | None = None) -> None:
        self._check_open()
        self._offsets.store(message=message, offsets=offsets)

    def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """OFFSET_INVALID if this consumer committed none."""
        del timeout
        self._check_open()
        check_list(partitions)
        return [
            TopicPartition(
                partition.topic, partition.partition, or_invalid(self._offsets.committed(partition_id(partition)))
            )
            for partition in partitions
        ]

    # --- the archive ------------------------------------------------------------------------------------------------

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        del timeout
        self._check_open()
        return cluster_metadata(self._archives.listed(topic))

    def cluster_id(self, timeout: float = -1) -> str | None:
        """The source cluster of the first open topic, if any."""
        del timeout
        self._check_open()
        return next((archive.cluster_id for archive in self._archives.opened.values()), None)

    def memberid(self) -> None:
        self._check_open()

    def consumer_group_metadata(self) -> Any:
        """Raises KafkaException: a transaction can't commit offsets of an archive."""
        raise failure(UNKNOWN_GROUP, "an archive has no groups: write offsets with the results instead")

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Raises KafkaException: the archive is read with the catalog's credentials."""
        del username, password
        raise failure(INVALID_ARG, "an archive is read with the credentials of the [catalog] section")

    def close(self) -> None:
        """Stop reading and end all threads. Idempotent."""
        if self._is_closed:
            return
        try:
            self.unsubscribe()
        finally:
            self._is_closed = True
            self._executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        waiting = {reader.archive.topic: reader.archive for reader in self._assignment if reader.is_at_end}
        subscribed = self._archives.opened if self._subscription is not None else {}
        if self._refresher.step((waiting | subscribed).values()):
            self._extend_subscription()

    def _apply_subscription(self) -> None:
        subscription = self._subscription
        if subscription is None or subscription.is_applied:
            return
        partitions = subscription.extend(self._archives.tables, self._archives.of)
        if subscription.on_assign is not None:
            subscription.on_assign(self, partitions)
        if not len(self._assignment):
            self.assign(partitions)

    def _extend_subscription(self) -> None:
        if self._subscription is not None and self._subscription.is_applied:
            fresh = self._subscription.extend(self._archives.tables, self._archives.of)
            self.incremental_assign(
                [partition for partition in fresh if partition_id(partition) not in self._assignment]
            )

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
