"""Open transactions, which hold back a partition's last stable offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin.transactions import DescribeProducersRequest, ListTransactionsRequest

from archiver.errors import SourceError
from archiver.kafka.broker import BrokerClient


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """`last_timestamp` (ms) is of the producer's last record in the partition.

    `transactional_id` is None without DESCRIBE on it.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_timestamp: int
    transactional_id: str | None = None


def open_transactions(
    brokers: BrokerClient, topic: str, partitions: Iterable[int]
) -> dict[int, tuple[OpenTransaction, ...]]:
    """For display only: empty if brokers refuse or are older than 2.8."""
    try:
        answers = brokers.ask_leaders(topic, partitions, _request, _partition_of)
    except SourceError:
        return {}
    open_ones = {
        partition: [producer for producer in answer.active_producers if producer.current_txn_start_offset >= 0]
        for partition, answer in answers.items()
    }
    names = _names(
        brokers, {transaction.producer_id for transactions in open_ones.values() for transaction in transactions}
    )
    return {
        partition: tuple(
            OpenTransaction(
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                first_offset=transaction.current_txn_start_offset,
                last_timestamp=transaction.last_timestamp,
                transactional_id=names.get(transaction.producer_id),
            )
            for transaction in sorted(transactions, key=lambda item: item.current_txn_start_offset)
        )
        for partition, transactions in open_ones.items()
        if transactions
    }


def _request(asked: Mapping[str, Sequence[int]]) -> Any:
    about = DescribeProducersRequest.TopicRequest
    topics = [about(name=topic, partition_indexes=list(partitions)) for topic, partitions in asked.items()]
    return DescribeProducersRequest(topics=topics)


def _partition_of(answer: Any) -> int:
    return int(answer.partition_index)


def _names(brokers: BrokerClient, producer_ids: set[int]) -> dict[int, str]:
    if not producer_ids:
        return {}
    request = ListTransactionsRequest(
        state_filters=[], producer_id_filters=sorted(producer_ids), duration_filter=-1, transactional_id_pattern=None
    )
    return {
        state.producer_id: state.transactional_id
        for response in brokers.ask_every_broker(request)
        for state in response.transaction_states
    }
