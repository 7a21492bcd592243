"""A topic by the broker, a replay, and pyiceberg."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from archiver.config import load_config
from archiver.replay import ReplayConsumer
from tests.fault.soak.workload import text_field
from tests.support.archive.readers import Seen, seen_record
from tests.support.servers.stack import Stack, unique

TIMEOUT_S = 60.0
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MS = timedelta(milliseconds=1)

Starts = Mapping[int, int]
"""Offsets to read from, by partition."""


def of_kafka(stack: Stack, topic: str, starts: Starts) -> dict[int, list[Seen]]:
    consumer = Consumer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": unique("judge"),
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        return _read(consumer, topic, starts)
    finally:
        consumer.close()


def of_replay(config: Path, topic: str, starts: Starts) -> dict[int, list[Seen]]:
    with ReplayConsumer(load_config(config), {"enable.partition.eof": True}) as consumer:
        return _read(consumer, topic, starts)


def of_rows(table: Table, tasks: Iterable[FileScanTask]) -> Iterator[Seen]:
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for task in tasks:
        for row in scan.to_table([task]).to_pylist():
            yield _row(row)


def _read(consumer: Any, topic: str, starts: Starts) -> dict[int, list[Seen]]:
    records: dict[int, list[Seen]] = {partition: [] for partition in starts}
    left = set(starts)
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in starts.items()])
    deadline = time.monotonic() + TIMEOUT_S
    while left:
        if time.monotonic() > deadline:
            raise TimeoutError(f"neither records nor the ends of {topic}, partitions {sorted(left)}")
        for message in consumer.consume(5_000, 0.1):
            error = message.error()
            if error is None:
                records[message.partition()].append(seen_record(message))
                deadline = time.monotonic() + TIMEOUT_S
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            elif not error.retriable() and error.code() not in _PASSING:
                raise AssertionError(str(error))
    return records


_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})


def _row(row: Mapping[str, Any]) -> Seen:
    kafka, value = row["kafka"], row["val"]
    return Seen(
        partition=kafka["partition"],
        offset=kafka["offset"],
        timestamp_type=kafka["timestamp_type"] + 1,
        timestamp=_milliseconds(kafka),
        key=None if row["key"] is None else row["key"]["__raw__"],
        value=None if value is None else _value(value),
        headers=tuple((header["key"], header["value"]) for header in row["headers"]),
    )


def _value(value: Mapping[str, Any]) -> bytes | None:
    raw: bytes | None = value["__raw__"]
    if raw is not None or "f1" not in value:
        return raw
    fields = {int(name[1:]): text for name, text in value.items() if not name.startswith("__") and text}
    content = b"".join(text_field(number, text) for number, text in sorted(fields.items()))
    return content + (value["__unrecognized__"] or b"")


def _milliseconds(kafka: Mapping[str, Any]) -> int:
    if kafka["timestamp_type"] == 1:
        return (kafka["append_timestamp"] - _EPOCH) // _MS
    if kafka["raw_timestamp"] is not None:
        return int(kafka["raw_timestamp"])
    return -1 if kafka["event_timestamp"] is None else (kafka["event_timestamp"] - _EPOCH) // _MS


def in_order(found: Mapping[int, Sequence[Seen]]) -> list[Seen]:
    return [record for _, records in sorted(found.items()) for record in records]
