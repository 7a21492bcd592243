"""Raw batches of one partition, as its leader has them on disk, and the columns of a whole range of offsets.

Made where the fetching is done, from plain options. Committed records only: the broker's list of aborted transactions
comes with every piece. Leaders are followed as they move; what the log has lost is a `DataLoss` that names the range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self
from uuid import UUID

from kafka import errors as kafka
from kafka.protocol.consumer import FetchRequest

from archiver.kafka import losses
from archiver.kafka.broker import BrokerClient
from archiver.kafka.range_reader import Fetched, read_range
from archiver.kafka.retries import with_retries
from archiver.wire import AbortedTransaction, DecodedBatches, DecodeLimits

__all__ = ["Fetched", "PartitionFetcher"]

_CONSUMER: Final = -1
_NO_SESSION: Final = -1
_NO_REPLICA: Final = -1
_UNKNOWN: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
_LAST_VERSION_BY_NAME: Final = 12
_NO_TOPIC_ID: Final = UUID(int=0)


def log_reader(
    brokers: BrokerClient, topic: str, topic_id: UUID | None
) -> Callable[[int, int, int], Iterator[DecodedBatches]]:
    """Reads ranges of a topic's partitions by `brokers`, the records of a batch that straddles the start too."""

    def read(partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        return PartitionFetcher(brokers, topic, topic_id, partition).batches(start_offset, end_offset, cut_head=True)

    return read


class PartitionFetcher:
    """Fetches from one partition. With `topic_id`, a topic that was created anew under the name is refused.

    `options` have librdkafka's names; a client in their place is used, and closed with this.
    Raises as `BrokerClient` does, and `DataLoss`.
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
        """Close all connections."""
        self._broker.close()

    def fetch(
        self, offset: int, *, max_bytes: int | None = None, committed: bool = True, last_epoch: int = _UNKNOWN
    ) -> Fetched:
        """The batches from the one that holds `offset` on: whole ones, and perhaps a part of the next.

        About `max_bytes` (default `fetch.max.bytes`), but at least one batch. Empty where nothing came in
        `fetch.wait.max.ms`. Without `committed`, records of open transactions come too. With the `last_epoch` before
        the offset, a leader whose log has another past says so and gives nothing.
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
        """The records that [start_offset, end_offset) owns, in pieces that follow one another without a gap.

        Each fetch is told the epoch of what was read before it, the first one `last_epoch`: `LogTruncated` where the
        leader's log isn't the one that was read so far.

        There is at least one piece, though it may hold no records. The first one's `start_offset` is where this range
        really starts, the last one's `next_offset` where it ends; the last one is `complete`. While a piece is decoded
        and used the next is fetched, by one thread; two of about `max_bytes` are in memory, and one's columns.
        """
        size = self._options.fetch_bytes if max_bytes is None else max_bytes
        return read_range(
            lambda offset, *, peek, last_epoch: self.fetch(
                offset, max_bytes=1 if peek else size, committed=not peek, last_epoch=last_epoch
            ),
            start_offset=start_offset,
            end_offset=end_offset,
            cut_head=cut_head,
            limits=limits or DecodeLimits(),
            stall_seconds=self._options.request_timeout / 1000,
            where={"topic": self._topic, "partition": self._partition},
            last_epoch=last_epoch,
        )

    def _fetch(self, offset: int, max_bytes: int, isolation_level: int, last_epoch: int) -> Fetched:
        leaders = self._broker.leaders
        node, epoch = leaders.leader(self._topic, self._partition)
        losses.check_topic_id(self._topic, archived=self._topic_id, found=leaders.topic(self._topic).topic_id)
        response = leaders.ask(node, self._topic, self._request(offset, max_bytes, isolation_level, epoch, last_epoch))
        leaders.check(self._topic, response.error_code)
        if not response.responses:
            raise kafka.UnknownError
        answer = response.responses[0].partitions[0]
        if answer.error_code == kafka.OffsetOutOfRangeError.errno:
            self._name_loss(offset)
            if last_epoch != _UNKNOWN and not self._broker.end_of_epoch(self._topic, {self._partition: last_epoch}):
                return self._fetch(offset, max_bytes, isolation_level, _UNKNOWN)  # a leader without a history
            raise kafka.OffsetNotAvailableError
        leaders.check(self._topic, answer.error_code)
        diverging, held = answer.diverging_epoch, answer
        if not answer.records and answer.preferred_read_replica not in {None, _NO_REPLICA, node}:
            replica = answer.preferred_read_replica
            held = self._of_replica(replica, self._request(offset, max_bytes, isolation_level, epoch, _UNKNOWN))
        return Fetched(
            data=held.records or b"",
            aborted=tuple(
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in held.aborted_transactions or ()
            ),
            high_watermark=answer.high_watermark,
            last_stable_offset=answer.last_stable_offset,
            log_start_offset=answer.log_start_offset,
            epoch_end=diverging.end_offset if diverging is not None and diverging.end_offset != _UNKNOWN else None,
        )

    def _of_replica(self, replica: int, request: Any) -> Any:
        """The answer of the replica that the leader has its readers ask: its records. What the log is, the leader says.

        A replica that lags has less than the leader: what it doesn't have yet is asked for again, and is no loss.
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
        """Say which range the log no longer holds; it may hold it still, where a new leader is catching up."""
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
