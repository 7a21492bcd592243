"""A consumer of archived topics with the methods of `confluent_kafka.Consumer`.

Code written for the one runs on the other: assign, seek, poll, consume, offsets by time. Where an archive differs from
a broker (no groups, no credentials of its own) each method says what it does instead.
"""

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
from archiver.replay.consumer.assigned import AssignedPartitions
from archiver.replay.consumer.assignment import Assignment, PartitionState
from archiver.replay.consumer.cluster_metadata import describe
from archiver.replay.consumer.delivery import Delivery
from archiver.replay.consumer.message import ReplayMessage
from archiver.replay.consumer.offset_store import OffsetStore
from archiver.replay.consumer.open_archives import OpenArchives
from archiver.replay.consumer.options import ReplayOptions
from archiver.replay.consumer.partitions import INVALID_ARG, UNKNOWN_GROUP, check_list, failure, or_invalid, place_of
from archiver.replay.consumer.refresher import Refresher
from archiver.replay.consumer.subscription import Subscription

MAX_MESSAGES = 1_000_000
Callback: TypeAlias = Callable[[Any, list[TopicPartition]], Any]


class ReplayConsumer:
    """Reads archived topics as a Kafka consumer reads live ones. For one thread at a time.

    It always has every partition it asks for: there are no groups. At the end of a partition it waits for the archive
    to grow, loading the table again every few seconds. Errors of the archive (ArchiverError, CatalogError) are raised,
    never passed as messages; after one that is retryable, the next poll goes on where it stood.
    """

    def __init__(
        self, config: Config, options: Mapping[str, Any] | None = None, *, tables: TableSource | None = None
    ) -> None:
        """`options` are those of ReplayOptions; `tables` is where tables come from if not from `config`'s catalog."""
        self._options = ReplayOptions.parse(options or {})
        self._archives = OpenArchives(config, tables)
        self._executor = ThreadPoolExecutor(self._options.parallelism + 1, thread_name_prefix="replay")
        self._assignment = Assignment(self._executor, self._options.parallelism)
        self._offsets = OffsetStore()
        self._subscription: Subscription | None = None
        self._refresher = Refresher(self._executor, self._options.refresh_seconds)
        self._delivery = Delivery(
            self._assignment,
            self._refresher,
            tells_ends=self._options.partition_eof,
            prepare=self._apply_subscription,
            refresh=self._refresh,
        )
        self._partitions = AssignedPartitions(
            self._assignment,
            self._delivery,
            archives=self._archives,
            offsets=self._offsets,
            reset=self._options.auto_offset_reset,
        )
        self._is_closed = False

    # --- which partitions -------------------------------------------------------------------------------------------

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions and no others, each from its offset.

        An offset is a number, OFFSET_BEGINNING, OFFSET_END, or OFFSET_STORED/OFFSET_INVALID: what this consumer
        committed, else by `auto.offset.reset`. ReplayError where a topic has no archive.
        """
        self._check_open()
        self._partitions.replace(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions too."""
        self._check_open()
        self._partitions.add(partitions)

    def unassign(self) -> None:
        """Read nothing."""
        self._check_open()
        self._partitions.clear()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no more."""
        self._check_open()
        self._partitions.remove(partitions)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions being read, each with the offset it stands at."""
        self._check_open()
        return [TopicPartition(*state.place, state.position) for state in self._assignment]

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        on_lost: Callback | None = None,  # noqa: ARG002 - nothing is ever lost to another member
    ) -> None:
        """Read every partition of these topics, with partitions that the archive gains later.

        A name that begins with `^` is a regular expression over the archived topics. The assignment is made, and
        `on_assign` called, at the next poll; `on_revoke` at `unsubscribe`, another `subscribe`, and `close`. `on_lost`
        is never called.
        """
        self._check_open()
        if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
            raise TypeError("requires a list of topic names")
        self.unsubscribe()
        self._subscription = Subscription(tuple(topics), on_assign, on_revoke)

    def unsubscribe(self) -> None:
        """End the subscription and read nothing."""
        self._check_open()
        subscription, self._subscription = self._subscription, None
        if subscription is not None and subscription.on_revoke is not None and len(self._assignment):
            subscription.on_revoke(self, self.assignment())
        self.unassign()

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Give no records of these partitions until they are resumed."""
        self._check_open()
        self._partitions.set_paused(partitions, paused=True)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Give records of these partitions again."""
        self._check_open()
        self._partitions.set_paused(partitions, paused=False)

    def seek(self, partition: TopicPartition) -> None:
        """Go on from another offset of an assigned partition; logical offsets as in `assign`."""
        self._check_open()
        self._partitions.seek(partition)

    # --- records ----------------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None = None) -> ReplayMessage | None:
        """Return the next record or event, or None when none came within `timeout` seconds (None or -1: no limit)."""
        message = self._delivery.at_hand()
        if message is not None:
            return message
        found = self.consume(1, -1 if timeout is None else timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[ReplayMessage]:
        """Return the next records and events: `num_messages` of them, or what came within `timeout` seconds.

        A failure after some came is raised by the next call, so that none of them is lost.
        """
        self._check_open()
        if not 0 <= num_messages <= MAX_MESSAGES:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        deadline = None if timeout < 0 else time.monotonic() + timeout
        return self._delivery.take(num_messages, deadline)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rest of the assigned partitions, up to where the archive ends now, as Arrow batches.

        A batch holds records of one partition in order: partition, offset, timestamp_type, timestamp (ms, -1: none),
        key, value, headers. Its schema's metadata names the topic, under `topic`.
        """
        self._check_open()
        self._apply_subscription()
        ends = {state.place: state.end for state in self._assignment}

        def wanted(state: PartitionState) -> bool:
            return not state.is_paused and (state.view is not None or state.position < ends.get(state.place, 0))

        while any(wanted(state) for state in self._assignment):
            state = self._assignment.ready(wanted)
            if state is None:
                wait(self._assignment.under_way(wanted), return_when=FIRST_COMPLETED)
                continue
            batch = state.rest()
            state.advance(batch.num_rows)
            yield pa.RecordBatch.from_arrays(
                batch.columns[: len(RECORDS)], schema=RECORDS.with_metadata({"topic": state.archive.topic})
            )

    # --- offsets ----------------------------------------------------------------------------------------------------

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return, for each, the offset after the last record given; OFFSET_INVALID where none was."""
        self._check_open()
        check_list(partitions)
        states = [self._assignment.find(place_of(one)) for one in partitions]
        return [
            TopicPartition(one.topic, one.partition, or_invalid(state.consumed if state else None))
            for one, state in zip(partitions, states, strict=True)
        ]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float | None = None, cached: bool = False
    ) -> tuple[int, int]:
        """Return the least archived offset and the one after the last; `cached`: without loading the table again.

        `timeout` is not needed: the catalog's own time limit holds.
        """
        del timeout
        self._check_open()
        archive = self._archives.of(partition.topic)
        if not cached:
            archive.refresh()
        return archive.watermarks(partition.partition)

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """Return, for each, the least offset whose timestamp is `offset` (ms) or later; OFFSET_END where none is."""
        del timeout
        self._check_open()
        check_list(partitions)
        found = [self._archives.of(one.topic).offset_for_time(one.partition, one.offset) for one in partitions]
        return [
            TopicPartition(one.topic, one.partition, OFFSET_END if offset is None else offset)
            for one, offset in zip(partitions, found, strict=True)
        ]

    def commit(
        self,
        message: ReplayMessage | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Remember offsets for this consumer: those given, the one after `message`, or what was stored or consumed.

        An archive has no groups, so they end with the consumer; keep them beside your results to survive it.
        """
        self._check_open()
        current = {state.place: state.consumed for state in self._assignment if state.consumed is not None}
        committed = self._offsets.commit(message=message, offsets=offsets, current=current)
        return None if asynchronous else committed

    def store_offsets(self, message: ReplayMessage | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Set offsets aside for the next `commit` without arguments."""
        self._check_open()
        self._offsets.store(message=message, offsets=offsets)

    def committed(self, partitions: list[TopicPartition], timeout: float | None = None) -> list[TopicPartition]:
        """Return what this consumer committed; OFFSET_INVALID where it committed nothing."""
        del timeout
        self._check_open()
        check_list(partitions)
        return [
            TopicPartition(one.topic, one.partition, or_invalid(self._offsets.committed(place_of(one))))
            for one in partitions
        ]

    # --- the archive ------------------------------------------------------------------------------------------------

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Describe the archived topics, or one; partitions have no leader and no replicas."""
        del timeout
        self._check_open()
        return describe(self._archives.described(topic))

    def cluster_id(self, timeout: float = -1) -> str | None:
        """Return the id of the cluster that the first topic in use was archived from; None before any is."""
        del timeout
        self._check_open()
        return next((archive.cluster_id for archive in self._archives.opened.values()), None)

    def memberid(self) -> None:
        """Return None: there is no group to be a member of."""
        self._check_open()

    def consumer_group_metadata(self) -> Any:
        """Raise KafkaException: transactions can't commit a position in an archive; send it with the results."""
        raise failure(UNKNOWN_GROUP, "an archive has no groups: write offsets with the results instead")

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Raise KafkaException: the archive is read with the catalog's credentials."""
        del username, password
        raise failure(INVALID_ARG, "an archive is read with the credentials of the [catalog] section")

    def close(self) -> None:
        """End everything; closing twice is harmless."""
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
        waiting = {state.archive.topic: state.archive for state in self._assignment if state.is_at_end}
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
            self.incremental_assign([one for one in fresh if place_of(one) not in self._assignment])

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
