"""A consumer process that reads a topic repeatedly at full speed.

Usage: fast_reader.py OPTIONS, a JSON object with `bootstrap`, `topic`, `ends`, `log`. Each second it logs the time in
ns and the total of records. It ends if an offset isn't the next.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

READ_AT_ONCE = 5_000
NOTED_EVERY_S = 1.0


def read(given: dict[str, Any]) -> None:
    ends = {int(partition): end for partition, end in given["ends"].items()}
    options = {"bootstrap.servers": given["bootstrap"], "group.id": "fast", "enable.auto.commit": False}
    reading = Consumer({**options, "auto.offset.reset": "error", "log_level": 0})
    count, due = 0, 0.0
    with Path(given["log"]).open("w", buffering=1, encoding="ascii") as log:
        while True:
            following = dict.fromkeys(ends, 0)
            reading.assign([TopicPartition(given["topic"], end, OFFSET_BEGINNING) for end in ends])
            while following != ends:
                for message in reading.consume(READ_AT_ONCE, 0.2):
                    if message.error() is not None:
                        raise RuntimeError(message.error())
                    partition, offset = message.partition(), message.offset()
                    if offset != following[partition]:
                        raise RuntimeError(f"{offset} of {partition} came instead of {following[partition]}")
                    following[partition] = offset + 1
                    count += 1
                if time.monotonic() >= due:
                    due = time.monotonic() + NOTED_EVERY_S
                    log.write(f"{time.monotonic_ns()} {count}\n")


if __name__ == "__main__":
    read(json.loads(sys.argv[1]))
