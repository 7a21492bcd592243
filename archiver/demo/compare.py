"""Compares the records of `confluent_kafka` and of `ReplayConsumer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from archiver.errors import ReplayError
from archiver.replay import ReplayConsumer
from archiver.wire.record_digest import RecordDigest

_BATCH = 5_000
_POLL_S = 0.5
_TIMEOUT_S = 20.0


class Reads(Protocol):
    def assign(self, partitions: list[Any], /) -> Any: ...

    def consume(self, num_messages: int, timeout: float, /) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Seen:
    partition: int
    offset: int
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def broker_consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "archiver-demo",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )


def compare(kafka: Reads, archive: Reads, topic: str, partitions: int, progress: Callable[[int], None]) -> int:
    """Return the number of records. Raises ReplayError at the first difference."""
    total = 0
    for partition in range(partitions):
        pairs = zip_longest(_read(kafka, topic, partition), _read(archive, topic, partition))
        for number, (expected, got) in enumerate(pairs, start=1):
            if expected != got:
                raise ReplayError(
                    f"The archive and Kafka differ: Kafka has {expected}, the archive has {got}",
                    topic=topic,
                    partition=partition,
                )
            total += 1
            if number % 1_000 == 0:
                progress(1_000)
    return total


def digest(archive: ReplayConsumer, topic: str, partitions: int) -> RecordDigest:
    archive.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    return sum(map(RecordDigest.of_seen, archive.batches()), RecordDigest())


def _read(consumer: Reads, topic: str, partition: int) -> Iterator[Seen]:
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        for message in consumer.consume(_BATCH, _POLL_S):
            error = message.error()
            if error is None:
                yield _seen(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                return
            else:
                raise ReplayError(f"A consumer failed: {error}", topic=topic, partition=partition)
            deadline = time.monotonic() + _TIMEOUT_S
    raise ReplayError("A consumer gave neither a record nor the end of the partition", topic=topic, partition=partition)


def _seen(message: Any) -> Seen:
    return Seen(
        message.partition(),
        message.offset(),
        message.timestamp(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
