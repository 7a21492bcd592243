"""Writes whole record batches to Kafka in transactions: what is committed appears once, all of it or nothing.

A writer is known by its transactional id. Opening one fences every earlier writer with the same id and ends the
transaction that it left open. After an error nothing is known of the open transaction: open the writer again, and ask
the log how far it came. Batches go to the brokers as bytes, so records arrive as they are, also those that a client
library for records can't express (a timestamp of 0, a header's name that isn't UTF-8).
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
"""After so long the broker aborts a transaction that its writer has neither committed nor aborted."""

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
"""Errors after which a writer that is opened anew can go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentity:
    """Who writes a batch: the fields of its header that make it part of a transaction, and count it only once."""

    producer_id: int
    epoch: int
    base_sequence: int


class ProducerBatch(Protocol):
    """A batch that waits for its producer's identity."""

    @property
    def rows(self) -> int:
        """How many records it has."""

    def encode(self, identity: ProducerIdentity) -> bytes | memoryview:
        """Return its bytes, in format v2, with base offset 0 and the transactional flag."""


@dataclass(slots=True)
class _Session:
    """A producer id and epoch, the sequences used with them, and the partitions in the open transaction."""

    producer_id: int
    epoch: int
    sequences: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    added: set[tuple[str, int]] = field(default_factory=set)


def _codes(answer: Any) -> list[int]:
    return [getattr(answer, "error_code", None) or 0]


def _codes_of_partitions(answer: Any) -> list[int]:
    """Errors of an answer to AddPartitionsToTxn; those that only say that others failed come last."""
    found = [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    return _codes(answer) + sorted(found, key=lambda code: code == kafka.OperationNotAttemptedError.errno)


class TransactionalWriter:
    """Writes batches in transactions. Not safe to share between threads.

    Raises what BrokerClient raises, AccessDenied where a right is missing, SourceError for batches that the broker
    refuses, and TransferTaken if another writer with the same id was opened.
    """

    def __init__(self, brokers: BrokerClient, transactional_id: str, *, seconds: float = TRANSACTION_SECONDS) -> None:
        self.transactional_id: Final = transactional_id
        self._brokers = brokers
        self._timeout_ms = int(seconds * 1000)
        self._coordinator: int | None = None
        self._session: _Session | None = None

    def open(self) -> None:
        """Fence earlier writers with this id, end what they left open, and begin anew."""
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
        """Write one batch to each of these partitions, in the open transaction. Return the offsets they begin at."""
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
        found: dict[int, int] = {}
        self._retried(lambda: self._send(topic, waiting, found), topic=topic, partitions=sorted(batches))
        for partition, batch in batches.items():
            session.sequences[topic, partition] = (session.sequences[topic, partition] + batch.rows) % _SEQUENCES
        return found

    def commit(self) -> None:
        """Commit the open transaction, if there is one. If it raises, nobody knows yet whether it is committed."""
        self._end(committed=True)

    def abort(self) -> None:
        """Abort the open transaction, if there is one."""
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
        """Make partitions part of the open transaction before anything is written to them."""
        fresh = [each for each in sorted(partitions) if (topic, each) not in session.added]
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
        session.added.update((topic, each) for each in fresh)

    def _send(self, topic: str, waiting: dict[int, bytes | memoryview], found: dict[int, int]) -> None:
        """Send what still waits, once. Partitions that were written leave `waiting` for `found`."""
        leaders = self._brokers.leaders
        by_leader = defaultdict[int, list[int]](list)
        for partition in sorted(waiting):
            by_leader[leaders.leader(topic, partition)[0]].append(partition)
        about = ProduceRequest.TopicProduceData
        for node, led in by_leader.items():
            data = [about.PartitionProduceData(index=each, records=bytes(waiting[each])) for each in led]
            request = ProduceRequest(
                transactional_id=self.transactional_id,
                acks=_ALL_REPLICAS,
                timeout_ms=self._brokers.options.request_timeout,
                topic_data=[about(name=topic, partition_data=data)],
                max_version=_PRODUCE,
            )
            response = leaders.ask(node, topic, request)
            failures: list[tuple[int, kafka.KafkaError]] = []
            for each in (one for about_topic in response.responses for one in about_topic.partition_responses):
                error = kafka.for_code(each.error_code)
                if error is kafka.NoError:
                    found[each.index] = each.base_offset
                    del waiting[each.index]
                else:
                    text = (each.error_message,) if each.error_message else ()
                    failures.append((each.index, error(*text)))
            if failures:
                leaders.forget(topic)
                raise failures[0][1]
        if waiting:
            leaders.forget(topic)
            raise kafka.UnknownError(f"the answer leaves out partitions {sorted(waiting)}")

    def _coordinate(self, request: Any, codes: Callable[[Any], list[int]] = _codes) -> Any:
        """Send a request to the coordinator of the transactional id, once. `codes` has the errors of an answer.

        After an error that passes, the coordinator is looked up again: it may be another broker by then.
        """
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
