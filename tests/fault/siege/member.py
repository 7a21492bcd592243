"""A group member process that reads its partitions repeatedly.

Usage: member.py OPTIONS, a JSON object with `bootstrap`, `topic`, `group`, `ends`, `log`. Each second it logs the time
in ns and the records read, missing and repeated. At the end of a partition it commits and begins again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READ_AT_ONCE = 2_000
NOTED_EVERY_S = 1.0


@dataclass(slots=True)
class Positions:
    ends: dict[int, int]
    following: dict[int, int] = field(default_factory=dict)
    count: int = 0
    missing: int = 0
    repeated: int = 0

    def take(self, partition: int, offset: int) -> bool:
        self.count += 1
        expected = self.following.get(partition, offset)
        self.missing += max(0, offset - expected)
        self.repeated += max(0, expected - offset)
        is_last = offset + 1 >= self.ends[partition]
        self.following[partition] = 0 if is_last else offset + 1
        return is_last

    def assign(self, offsets: Iterable[tuple[int, int]]) -> None:
        self.following = dict(offsets)


def read(given: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = given["topic"]
    positions = Positions({int(partition): end for partition, end in given["ends"].items()})
    options = {"bootstrap.servers": given["bootstrap"], "group.id": given["group"], "enable.auto.commit": False}
    consumer = Consumer({**options, "auto.offset.reset": "earliest", "log_level": 0, "session.timeout.ms": 10_000})

    def assign(_: Any, partitions: Any) -> None:
        positions.assign((partition.partition, 0) for partition in partitions)
        consumer.assign([TopicPartition(topic, partition.partition, 0) for partition in partitions])

    consumer.subscribe([topic], on_assign=assign)
    due = 0.0
    with Path(given["log"]).open("w", buffering=1, encoding="ascii") as log:
        while True:
            for message in consumer.consume(READ_AT_ONCE, 0.2):
                if message.error() is not None:
                    raise RuntimeError(message.error())
                partition, offset = message.partition() or 0, message.offset() or 0
                if positions.take(partition, offset):
                    consumer.commit(offsets=[TopicPartition(topic, partition, offset + 1)])
                    consumer.seek(TopicPartition(topic, partition, 0))
            if time.monotonic() >= due:
                due = time.monotonic() + NOTED_EVERY_S
                noted = (positions.count, positions.missing, positions.repeated)
                log.write(f"{time.monotonic_ns()} {' '.join(map(str, noted))}\n")


if __name__ == "__main__":
    read(json.loads(sys.argv[1]))
