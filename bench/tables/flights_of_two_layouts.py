"""Millions of flights in two tables, with the former and the present layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from archiver.config import load_config
from archiver.demo.flights import events, read_flights
from archiver.demo.settings import MESSAGE, deploy_schema
from archiver.ingest.job import ArchiveJob
from tables.flights import MINUTE, key_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

PARTITIONS = 2
BATCH = 1_000
LAYOUTS: dict[str, dict[str, Any]] = {
    "before": {"partition_source": "nested"},
    "after": {"partition_source": "flat", "bloom_filters": ["key.__raw__"]},
}


def produce(stack: Stack, folder: Path, copies: int) -> tuple[str, int]:
    message = deploy_schema(folder, 2)
    topic = stack.topic(PARTITIONS, {"retention.ms": "-1"})
    producer = stack.producer(batch_num_messages=BATCH, linger_ms=200, compression_type="zstd")
    failures: list[Any] = []
    flights = [
        event for event in events(read_flights(), message) if event.value and not event.value.startswith(b"\xff")
    ]
    count = len(flights) * copies
    for number in range(count):
        flight = flights[number // copies]
        while True:
            try:
                producer.produce(
                    topic,
                    key=key_of(number, copies),
                    value=flight.value,
                    timestamp=flight.timestamp + number % copies * (MINUTE // (copies + 1)),
                    partition=number // BATCH % PARTITIONS,
                    on_delivery=lambda error, _: error and failures.append(error),
                )
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(300) or failures:
        raise KafkaException(failures[0] if failures else "the broker did not take all flights in five minutes")
    return topic, count


def archive(stack: Stack, folder: Path, topic: str) -> dict[str, str]:
    tables = {}
    for layout, keys in LAYOUTS.items():
        value = {"format": "protobuf", "message": MESSAGE, "proto": str(folder / "flight.proto")}
        config = load_config(stack.config({topic: {"value": value, "partition_by": "month", **keys}}))
        report = ArchiveJob(config, (topic,), engine=InlineEngine()).run_once()
        if not report.succeeded:
            raise RuntimeError(f"the job failed: {report}")
        tables[layout] = config.topic(topic).table
    return tables
