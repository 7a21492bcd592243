"""The benchmarks' orders in a Kafka topic: 260 bytes each, zstd, batches of 1 MB, linger 100 ms.

Without a broker, it only prints the sizes of 10,000 orders. Every run has the same orders: one per 37 ms of one day,
keyed by customer, with a header.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from google.protobuf.descriptor import Descriptor
from values.orders import order, order_type
from values.written_orders import Format, writer_of

SEED = 7
MIDNIGHT = 1_700_006_400_000
STEP_MS = 37
STEPS_A_DAY = 86_400_000 // STEP_MS
PRODUCER = {
    "compression.type": "zstd",
    "batch.size": 1 << 20,
    "linger.ms": 100,
    "queue.buffering.max.messages": 200_000,
}
TOPIC = {"retention.ms": "-1", "max.message.bytes": str(4 << 20)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    key: bytes
    value: bytes
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


def message_type() -> Descriptor:
    return order_type()


def orders(count: int, format_: Format = "protobuf") -> Iterator[Order]:
    write, draw = writer_of(format_), random.Random(SEED)
    for index in range(count):
        values: dict[str, Any] = order(draw, index)
        values["created"] = MIDNIGHT + index % STEPS_A_DAY * STEP_MS
        values["note"] = f"leave at the door of number {draw.randrange(400)}, please"
        yield Order(
            key=b"customer-%d" % values["customer"]["id"],
            value=write(values),
            timestamp=values["created"],
            headers=(("source", draw.choice((b"web", b"app"))),),
        )


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=TOPIC)])[topic].result(30)


def produce(bootstrap: str, topic: str, count: int, format_: Format = "protobuf") -> None:
    """Raises KafkaException."""
    send(bootstrap, topic, orders(count, format_))


def send(bootstrap: str, topic: str, some: Iterable[Order]) -> None:
    failures: list[Any] = []

    def told(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER})
    for row in some:
        while True:
            try:
                producer.produce(
                    topic,
                    key=row.key,
                    value=row.value,
                    timestamp=row.timestamp,
                    headers=list(row.headers),
                    on_delivery=told,
                )
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120) or failures:
        raise KafkaException(failures[0] if failures else "the broker did not take all orders in two minutes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders for benchmarks")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--bootstrap-servers")
    parser.add_argument("--topic", default="orders")
    options = parser.parse_args()
    if options.bootstrap_servers:
        create_topic(options.bootstrap_servers, options.topic, options.partitions)
        produce(options.bootstrap_servers, options.topic, options.records)
        print(f"{options.records:,} orders in {options.topic}")
        return
    sizes = [len(row.value) for row in orders(min(options.records, 10_000))]
    print(f"{len(sizes):,} orders of {sum(sizes) / len(sizes):.0f} bytes, {min(sizes)} to {max(sizes)}")


if __name__ == "__main__":
    main()
