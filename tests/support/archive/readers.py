"""Records from the broker and from the table, in one shape."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from archiver.config import load_config
from archiver.replay import ReplayConsumer
from tests.support.kafka.record_digest import SeenRecord, digest
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

TIMEOUT_S = 60.0
_LOOK_S = 0.02


class Seen(NamedTuple):
    partition: int
    offset: int
    timestamp_type: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def from_kafka(stack: Stack, topic: str, partitions: int) -> list[Seen]:
    consumer = stack.consumer(enable_partition_eof=True, receive_message_max_bytes=200_000_000)
    try:
        consumer.list_topics(
            topic, TIMEOUT_S
        )  # a client that knows no leader when it looks up offsets waits half a second
        return _by_partition(seen_from(consumer, topic, *range(partitions)))
    finally:
        consumer.close()


def wait_until_decided(stack: Stack, topic: str, partitions: int) -> None:
    """Brokers report the end of a transaction before they write the markers."""
    requests = {TopicPartition(topic, value): OffsetSpec.latest() for value in range(partitions)}

    def ends(level: IsolationLevel) -> list[int]:
        answers = stack.admin.list_offsets(requests, isolation_level=level)
        return [answers[value].result(TIMEOUT_S).offset for value in requests]

    def is_decided() -> bool:
        with suppress(KafkaException):  # of a new leader that doesn't know yet
            return ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED)
        return False

    eventually(is_decided, f"the end of a transaction in {topic}", seconds=TIMEOUT_S)


def from_archive(config: Path, topic: str, partitions: int) -> list[Seen]:
    with ReplayConsumer(load_config(config), {"enable.partition.eof": True}) as consumer:
        return _by_partition(seen_from(consumer, topic, *range(partitions)))


def _by_partition(records: Iterable[Seen]) -> list[Seen]:
    return sorted(records, key=lambda record: record.partition)


def digest_of(records: Iterable[Seen]) -> str:
    """Kafka counts timestamp types from -1, confluent_kafka from 0."""
    return digest(
        SeenRecord(
            partition=record.partition,
            offset=record.offset,
            timestamp_type=record.timestamp_type - 1,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple((name.encode(), value) for name, value in record.headers),
        )
        for record in records
    )


def seen_from(consumer: Any, topic: str, *partitions: int) -> Iterator[Seen]:
    """Needs `enable.partition.eof`."""
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    unread = set(partitions)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for message in consumer.consume(1_000, _LOOK_S):
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
                if not unread:
                    return
                continue
            assert error is None, error
            yield seen_record(message)
            deadline = time.monotonic() + TIMEOUT_S
    raise TimeoutError(f"neither a record nor the end of {topic}-{sorted(unread)} in {TIMEOUT_S} s")


def seen_record(message: Any) -> Seen:
    return Seen(
        message.partition(),
        message.offset(),
        *message.timestamp(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
