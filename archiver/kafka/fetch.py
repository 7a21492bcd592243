"""Fetch raw batches, or a range of committed records as columns, from one partition.

Follows the leader when it moves. Lost records raise a `DataLoss` with their range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from kafka import errors as kafka
from kafka.protocol.consumer import FetchRequest

from archiver.errors import CorruptBatch, SourceError
from archiver.kafka import losses
from archiver.kafka.broker import BrokerClient
from archiver.kafka.fetched import Fetched
from archiver.kafka.protocol_errors import with_retries
from archiver.wire.transactions import AbortedTransaction

if TYPE_CHECKING:
    from archiver.wire import DecodedBatches, DecodeLimits

__all__ = ["Fetched", "PartitionFetcher"]

FETCHES: Final = 3
"""How often offsets are fetched before they count as unreadable. The last fetch is on a new connection."""

_CONSUMER: Final = -1
_NO_SESSION: Final = -1
_NO_REPLICA: Final = -1
_UNKNOWN: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
_LAST_VERSION_BY_NAME: Final = 12
_NO_TOPIC_ID: Final = UUID(int=0)


def log_reader(
    brokers: BrokerClient, topic: str, topic_id: UUID | None, *, max_bytes: int | None = None
) -> Callable[[int, int, int], Iterator[DecodedBatches]]:
    """Return a reader of `(partition, start_offset, end_offset)`.

    It cuts a batch that straddles the start.
    """

    def read(partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        fetcher = PartitionFetcher(brokers, topic, topic_id, partition)
        return fetcher.batches(start_offset, end_offset, cut_head=True, max_bytes=max_bytes)

    return read


class PartitionFetcher:
    """Fetches by librdkafka's options or by a client, which `close` closes too.

    With `topic_id`, refuses a recreated topic. Raises as `BrokerClient`, and `DataLoss`.
    """

    def __init__(
        self, options: Mapping[str, str] | BrokerClient, topic: str, topic_id: UUID | None, partition: int
    ) -> None:
        self._broker = options if isinstance(options, BrokerClient) else BrokerClient(options)
        self._options = self._broker.options
        self._topic = topic
        self._topic_id = topic_id
        self._partition = partition

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._broker.close()

    def fetch(
        self, offset: int, *, max_bytes: int | None = None, committed: bool = True, last_epoch: int = _UNKNOWN
    ) -> Fetched:
        """Fetch from the batch that holds `offset`. The last batch may be truncated.

        Returns about `max_bytes` (default: `fetch.max.bytes`), at least one batch; nothing after `fetch.wait.max.ms`.
        `committed=False` includes open transactions. `last_epoch` is of the record before `offset`: if the log
        diverged, the answer has `Fetched.epoch_end`.
        """
        size = self._options.fetch_bytes if max_bytes is None else max_bytes
        isolation = _READ_COMMITTED if committed else _READ_UNCOMMITTED
        return with_retries(
            self._options,
            lambda: self._fetch(offset, size, isolation, last_epoch),
            topic=self._topic,
            partition=self._partition,
            offset=offset,
        )

    def batches(
        self,
        start_offset: int,
        end_offset: int,
        *,
        cut_head: bool = False,
        max_bytes: int | None = None,
        limits: DecodeLimits | None = None,
        last_epoch: int = _UNKNOWN,
    ) -> Iterator[DecodedBatches]:
        """Fetch and decode the range [start_offset, end_offset), in adjacent pieces.

        A range owns the batches whose base offset lies in it; with `cut_head` also the rest of a batch that straddles
        its start. There is at least one piece; the last is `complete`. Memory holds two fetches of about `max_bytes`,
        and one piece's columns.

        Raises `LogTruncated` if the log has diverged since `last_epoch`, and `CorruptBatch` after `FETCHES` fetches,
        the last on a new connection.
        """
        from archiver.kafka.range_reader import RangeToRead, read_range
        from archiver.wire import DecodeLimits

        size = self._options.fetch_bytes if max_bytes is None else max_bytes
        at, failures = start_offset, 0
        while True:
            pieces = read_range(
                lambda offset, *, peek, last_epoch: self.fetch(
                    offset, max_bytes=1 if peek else size, committed=not peek, last_epoch=last_epoch
                ),
                RangeToRead(
                    start_offset=at,
                    end_offset=end_offset,
                    cut_head=cut_head,
                    limits=limits or DecodeLimits(),
                    last_epoch=last_epoch,
                ),
                stall_seconds=self._options.request_timeout / 1000,
                where={"topic": self._topic, "partition": self._partition},
            )
            try:
                with closing(pieces):  # type: ignore[type-var]
                    for piece in pieces:
                        yield piece
                        failures = 0 if piece.next_offset > at else failures
                        at, last_epoch = piece.next_offset, max(last_epoch, *piece.epochs.epoch.tolist(), _UNKNOWN)
            except CorruptBatch as error:
                failures += 1
                if failures == FETCHES:
                    raise losses.corrupt(error, next_offset=at) from error
                if failures == FETCHES - 1:
                    self.reconnect()
            else:
                return

    def reconnect(self) -> None:
        with_retries(
            self._options,
            lambda: self._broker.leaders.disconnect(self._topic, self._partition),
            topic=self._topic,
            partition=self._partition,
        )

    def fetch_from(self, replica: int, offset: int, *, max_bytes: int) -> bytes:
        """Fetch committed batches once. Raises the protocol library's errors."""
        leaders = self._broker.leaders
        _, epoch = leaders.leader(self._topic, self._partition)
        answer = self._of_replica(replica, self._request(offset, max_bytes, _READ_COMMITTED, epoch, _UNKNOWN))
        return answer.records or b""

    def local_start(self) -> int | None:
        """The first offset on the leader's disk (KIP-405), None if unknown."""
        try:
            return self._broker.list_offsets(self._topic, [self._partition], "earliest_local")[self._partition]
        except SourceError:
            return None

    def other_replicas(self) -> tuple[int, ...]:
        described = self._broker.described(self._topic).partitions[self._partition]
        return tuple(replica for replica in described.replicas if replica != described.leader)

    def _fetch(self, offset: int, max_bytes: int, isolation_level: int, last_epoch: int) -> Fetched:
        leaders = self._broker.leaders
        if leaders.fetches_by_name and leaders.is_outdated(self._topic):
            leaders.forget(self._topic)
        node, epoch = leaders.leader(self._topic, self._partition)
        losses.check_topic_id(self._topic, archived=self._topic_id, found=leaders.topic(self._topic).topic_id)
        request = self._request(offset, max_bytes, isolation_level, epoch, last_epoch)
        response = leaders.ask(node, self._topic, request)
        if self._topic_id and request.API_VERSION <= _LAST_VERSION_BY_NAME and leaders.is_outdated(self._topic):
            leaders.fetches_by_name = True  # so the answer may be another topic's that has the name by now
            return self._fetch(offset, max_bytes, isolation_level, last_epoch)
        leaders.check(self._topic, response.error_code)
        if not response.responses:
            raise kafka.UnknownError
        answer = response.responses[0].partitions[0]
        if answer.error_code == kafka.OffsetOutOfRangeError.errno:
            self._name_loss(offset)
            if last_epoch != _UNKNOWN and not self._broker.end_of_epoch(self._topic, {self._partition: last_epoch}):
                return self._fetch(offset, max_bytes, isolation_level, _UNKNOWN)  # the leader keeps no epochs
            raise kafka.OffsetNotAvailableError
        leaders.check(self._topic, answer.error_code)
        diverging, source = answer.diverging_epoch, answer
        if not answer.records and answer.preferred_read_replica not in {None, _NO_REPLICA, node}:
            replica = answer.preferred_read_replica
            source = self._of_replica(replica, self._request(offset, max_bytes, isolation_level, epoch, _UNKNOWN))
        return Fetched(
            data=source.records or b"",
            aborted=tuple(
                AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
                for transaction in source.aborted_transactions or ()
            ),
            high_watermark=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset,
            log_start_offset=answer.log_start_offset,
            epoch_end=diverging.end_offset if diverging is not None and diverging.end_offset != _UNKNOWN else None,
        )

    def _of_replica(self, replica: int, request: Any) -> Any:
        """Only records of the preferred replica are used.

        Offsets that it lacks are retried: replicas lag.
        """
        leaders = self._broker.leaders
        try:
            response = leaders.ask(replica, self._topic, request)
            leaders.check(self._topic, response.error_code)
            if not response.responses:
                raise kafka.UnknownError
            answer = response.responses[0].partitions[0]
            if answer.error_code == kafka.OffsetOutOfRangeError.errno:
                raise kafka.OffsetNotAvailableError
            leaders.check(self._topic, answer.error_code)
        except kafka.KafkaError as error:
            error.add_note(f"broker {replica}, which the leader has its readers ask (its replica.selector.class)")
            raise
        return answer

    def _name_loss(self, offset: int) -> None:
        """Raises `DataLoss`. Returns if a new leader has the offset after all."""
        ask = (self._topic, (self._partition,))
        log_start = self._broker.list_offsets(*ask, "earliest")[self._partition]
        if offset < log_start:
            raise losses.deleted(self._topic, self._partition, offset=offset, log_start=log_start)
        log_end = self._broker.list_offsets(*ask, "high_watermark")[self._partition]
        if offset > log_end:
            raise losses.too_short(self._topic, self._partition, log_end=log_end, offset=offset)

    def _request(self, offset: int, max_bytes: int, isolation_level: int, epoch: int, last_epoch: int) -> Any:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=self._partition,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=_UNKNOWN,
            partition_max_bytes=max_bytes,
        )
        return FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=self._options.fetch_wait,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=0,
            session_epoch=_NO_SESSION,
            topics=[topic(topic=self._topic, topic_id=self._topic_id or _NO_TOPIC_ID, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=None if self._topic_id else _LAST_VERSION_BY_NAME,
        )
