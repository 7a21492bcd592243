"""Produces the demo's events and one aborted transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from archiver.demo.flights import HEADERS, Event
from archiver.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 4
ABORTED_RECORDS = 500
_TIMEOUT_S = 30.0


def create_topic(bootstrap: str, topic: str) -> None:
    """Raises SourceError."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic]
    try:
        made.result(_TIMEOUT_S)
    except KafkaException as error:
        raise SourceError(f"Kafka would not create the topic: {error}", topic=topic) from error


def produce(bootstrap: str, topic: str, events: Iterable[Event], progress: Callable[[int], None]) -> int:
    """Return the bytes of keys and values; `progress` gets counts of records. Raises SourceError."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd", "linger.ms": 20})
    failures: list[KafkaError] = []
    sent = count = 0

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for event in events:
        _send(producer, topic, event, delivered)
        sent += len(event.key) + len(event.value or b"")
        count += 1
        if count % 1_000 == 0:
            producer.poll(0)
            progress(1_000)
    producer.flush(_TIMEOUT_S)
    progress(count % 1_000)
    if failures:
        raise SourceError(f"Kafka refused {len(failures)} records: {failures[0]}", topic=topic)
    return sent


def abort_some(bootstrap: str, topic: str) -> None:
    errors_only = {"log_level": 3}  # no warning while the coordinator still loads: that takes a second
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-abandoned", **errors_only})
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    for number in range(ABORTED_RECORDS):
        producer.produce(topic, key=b"??", value=b"never happened", partition=number % PARTITIONS)
    producer.flush(_TIMEOUT_S)
    producer.abort_transaction(_TIMEOUT_S)


def _send(producer: Producer, topic: str, event: Event, delivered: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(
                topic,
                key=event.key,
                value=event.value,
                timestamp=event.timestamp,
                headers=list(HEADERS),
                on_delivery=delivered,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return
