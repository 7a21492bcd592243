"""Write whole record batches in transactions, exactly once.

Opening a writer fences earlier ones with its transactional id. After an error, open it again and look up the
log's end. Batches are bytes, so records that no client library can express arrive unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from kafka import errors as kafka
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest

from archiver.errors import AccessDenied, ArchiverError, LeaderUnavailable, SourceError, TransferTaken
from archiver.kafka.broker import BrokerClient
from archiver.kafka.protocol_errors import is_transient, with_retries

Answer = TypeVar("Answer")

TRANSACTION_SECONDS: Final = 60.0
"""After this time the broker aborts a transaction that its writer has neither committed nor aborted."""

_TRANSACTIONS: Final = 1
_ALL_REPLICAS: Final = -1
_SEQUENCES: Final = 1 << 31
# the protocol before KIP-890: every broker from 0.11 on speaks it
_FIND_BY_KEY: Final = 3
_INIT: Final = 4
_ADD_BY_CLIENT: Final = 3
_END: Final = 4
_PRODUCE: Final = 11

_FENCED: Final = (
    kafka.ProducerFencedError,
    kafka.InvalidProducerEpochError,
    kafka.InvalidProducerIdMappingError,
    kafka.InvalidTxnStateError,
)
_LOST_TRACK: Final = (
    kafka.OutOfOrderSequenceNumberError,
    kafka.DuplicateSequenceNumberError,
    kafka.UnknownProducerIdError,
    kafka.TransactionAbortableError,
)
"""Errors after which a writer can continue if it is opened again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    producer_id: int
    epoch: int
    base_sequence: int


class ProducerBatch(Protocol):
    @property
    def rows(self) -> int: ...

    def encode(self, identity: ProducerIdentity) -> bytes | memoryview:
        """Format v2, with base offset 0 and the transactional flag."""


@dataclass(slots=True)
class _Session:
    producer_id: int
    epoch: int
    sequences: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    added: set[tuple[str, int]] = field(default_factory=set)


def _codes(answer: Any) -> list[int]:
    return [getattr(answer, "error_code", None) or 0]


def _codes_of_partitions(answer: Any) -> list[int]:
    codes = [
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    return _codes(answer) + sorted(codes, key=lambda code: code == kafka.OperationNotAttemptedError.errno)


class TransactionalWriter:
    """Not thread-safe.

    Raises as BrokerClient, AccessDenied, SourceError for refused batches, and TransferTaken if another writer
    with its id was opened.
    """

    def __init__(self, brokers: BrokerClient, transactional_id: str, *, seconds: float = TRANSACTION_SECONDS) -> None:
        self.transactional_id: Final = transactional_id
        self._brokers = brokers
        self._timeout_ms = int(seconds * 1000)
        self._coordinator: int | None = None
        self._session: _Session | None = None

    def open(self) -> None:
        """Fence earlier writers with this id and end their transaction."""
        self._session = None

        def request() -> Any:
            return InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
                max_version=_INIT,
            )

        answer = self._retried(lambda: self._coordinate(request()))
        self._session = _Session(producer_id=answer.producer_id, epoch=answer.producer_epoch)

    def write(self, topic: str, batches: Mapping[int, ProducerBatch]) -> dict[int, int]:
        """Return the base offset of each partition's batch."""
        session = self._opened()
        self._add(session, topic, batches)
        waiting: dict[int, bytes | memoryview] = {}
        for partition, batch in batches.items():
            identity = ProducerIdentity(
                producer_id=session.producer_id,
                epoch=session.epoch,
                base_sequence=session.sequences[topic, partition],
            )
            waiting[partition] = batch.encode(identity)
        offsets: dict[int, int] = {}
        self._retried(lambda: self._send(topic, waiting, offsets), topic=topic, partitions=sorted(batches))
        for partition, batch in batches.items():
            session.sequences[topic, partition] = (session.sequences[topic, partition] + batch.rows) % _SEQUENCES
        return offsets

    def commit(self) -> None:
        """After an error its outcome is unknown."""
        self._end(committed=True)

    def abort(self) -> None:
        self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        session = self._opened()
        if not session.added:
            return

        def request() -> Any:
            return EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=session.producer_id,
                producer_epoch=session.epoch,
                committed=committed,
                max_version=_END,
            )

        self._retried(lambda: self._coordinate(request()))
        session.added.clear()

    def _opened(self) -> _Session:
        assert self._session is not None, "open the writer first"
        return self._session

    def _add(self, session: _Session, topic: str, partitions: Mapping[int, object]) -> None:
        fresh = [partition for partition in sorted(partitions) if (topic, partition) not in session.added]
        if not fresh:
            return
        about = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=fresh)

        def attempt() -> None:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=session.producer_id,
                v3_and_below_producer_epoch=session.epoch,
                v3_and_below_topics=[about],
                max_version=_ADD_BY_CLIENT,
            )
            self._coordinate(request, _codes_of_partitions)

        self._retried(attempt, topic=topic, partitions=fresh)
        session.added.update((topic, number) for number in fresh)

    def _send(self, topic: str, waiting: dict[int, bytes | memoryview], found: dict[int, int]) -> None:
        """Written partitions move to `found`."""
        leaders = self._brokers.leaders
        by_leader = defaultdict[int, list[int]](list)
        for partition in sorted(waiting):
            by_leader[leaders.leader(topic, partition)[0]].append(partition)
        about = ProduceRequest.TopicProduceData
        for node, led in by_leader.items():
            data = [about.PartitionProduceData(index=item, records=bytes(waiting[item])) for item in led]
            request = ProduceRequest(
                transactional_id=self.transactional_id,
                acks=_ALL_REPLICAS,
                timeout_ms=self._brokers.options.request_timeout,
                topic_data=[about(name=topic, partition_data=data)],
                max_version=_PRODUCE,
            )
            response = leaders.ask(node, topic, request)
            failures: list[tuple[int, kafka.KafkaError]] = []
            for item in (answer for about_topic in response.responses for answer in about_topic.partition_responses):
                error = kafka.for_code(item.error_code)
                if error is kafka.NoError:
                    found[item.index] = item.base_offset
                    del waiting[item.index]
                else:
                    text = (item.error_message,) if item.error_message else ()
                    failures.append((item.index, error(*text)))
            if failures:
                leaders.forget(topic)
                raise failures[0][1]
        if waiting:
            leaders.forget(topic)
            raise kafka.UnknownError(f"the answer leaves out partitions {sorted(waiting)}")

    def _coordinate(self, request: Any, codes: Callable[[Any], list[int]] = _codes) -> Any:
        """After transient errors the next call looks the coordinator up again."""
        if self._coordinator is None:
            self._coordinator = self._find_coordinator()
        try:
            response = self._brokers.ask(self._coordinator, request)
            for code in codes(response):
                self._check(code)
        except kafka.KafkaError as error:
            if is_transient(error) and not isinstance(error, kafka.ConcurrentTransactionsError):
                self._coordinator = None
            if isinstance(error, kafka.UnknownBrokerIdError):  # a broker that came after the last description
                self._brokers.leaders.refresh(())
            raise
        return response

    def _find_coordinator(self) -> int:
        def request() -> Any:
            return FindCoordinatorRequest(key=self.transactional_id, key_type=_TRANSACTIONS, max_version=_FIND_BY_KEY)

        answer = self._brokers.ask_any(request)
        self._check(answer.error_code)
        return int(answer.node_id)

    @staticmethod
    def _check(error_code: int) -> None:
        error = kafka.for_code(error_code)
        if error is not kafka.NoError:
            raise error

    def _retried(self, attempt: Callable[[], Answer], **where: Any) -> Answer:
        try:
            return with_retries(self._brokers.options, attempt, transactional_id=self.transactional_id, **where)
        except ArchiverError as error:
            raise _in_words_of_writing(error) from error


def _in_words_of_writing(error: ArchiverError) -> ArchiverError:
    cause = error.__cause__
    match cause:
        case kafka.AuthorizationError():
            return AccessDenied(
                f"The broker refuses: {cause}. Give the principal WRITE and DESCRIBE on the transactional id, and "
                "WRITE on the topics",
                **error.context,
            )
        case _ if isinstance(cause, _FENCED):
            return TransferTaken(
                f"The broker has ended this writer's transaction ({cause}): another process has taken over, or a "
                "transaction took too long. What was committed stays. Let one process run, and start it again",
                **error.context,
            )
        case _ if isinstance(cause, _LOST_TRACK):
            return LeaderUnavailable(
                f"The broker can't go on with the transaction ({cause}): it has to begin anew", **error.context
            )
        case kafka.MessageSizeTooLargeError() | kafka.RecordListTooLargeError():
            return SourceError(
                "The topic refuses a record or batch of this size: raise its max.message.bytes", **error.context
            )
        case kafka.InvalidTimestampError():
            return SourceError(
                "The topic refuses a record's timestamp: set its message.timestamp.type to CreateTime, and its "
                "message.timestamp.before.max.ms and message.timestamp.after.max.ms to 9223372036854775807",
                **error.context,
            )
        case _:
            return error
