"""The table gives back the broker's records."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.replay import ReplayConsumer
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.kafka import odd_records
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 4
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def order_proto(tmp_path: Path) -> Path:
    path = tmp_path / "order.proto"
    path.write_text(ORDER_PROTO)
    return path


def protobuf(path: Path) -> dict[str, object]:
    return {"format": "protobuf", "message": "shop.Order", "proto": str(path)}


def assert_equal(expected: list[Seen], got: list[Seen]) -> None:
    """Show the first difference instead of megabytes."""
    for number, (sent, received) in enumerate(zip(expected, got, strict=False)):
        assert sent == received, f"record {number}"
    assert len(expected) == len(got)


@pytest.mark.parametrize("source", ["nested", "flat"])
def test_everything_that_a_broker_serves_comes_back(
    stack: Stack, engine: SparkEngine, order_proto: Path, source: str
) -> None:
    topic = stack.topic(PARTITIONS, {"max.message.bytes": "67108864"})
    noise = random.Random(source)
    values = [order_bytes(noise) for _ in range(500)] + [noise.randbytes(number) for number in range(60)]
    bootstrap = stack.bootstrap_servers
    odd_records.produce_odd_records(bootstrap, topic, PARTITIONS)
    odd_records.produce_batch_sizes(bootstrap, topic, PARTITIONS, values, seed=1)
    odd_records.produce_transactions(bootstrap, topic, PARTITIONS)
    odd_records.produce_extreme_times(bootstrap, topic, PARTITIONS)
    if source == "nested":
        odd_records.produce_large(bootstrap, topic, PARTITIONS, 100, seed=2)
    config = stack.config({topic: {"value": protobuf(order_proto), "partition_source": source}})

    archive_once(config, topic, engine=engine)

    expected = from_kafka(stack, topic, PARTITIONS)
    assert len(expected) > 40_000
    assert_equal(expected, from_archive(config, topic, PARTITIONS))


@pytest.mark.slow
def test_gigabytes_of_large_records_come_back(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(PARTITIONS, {"max.message.bytes": "67108864"})
    odd_records.produce_large(stack.bootstrap_servers, topic, PARTITIONS, 600, seed=3)
    config = stack.config({topic: {}})

    archive_once(config, topic, engine=engine)

    assert_equal(from_kafka(stack, topic, PARTITIONS), from_archive(config, topic, PARTITIONS))


def test_append_times_come_back_though_they_go_backwards(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(1, {"message.timestamp.type": "LogAppendTime"})
    odd_records.produce_odd_records(stack.bootstrap_servers, topic, 1)
    segments = list(stack.endpoints.directory.rglob(f"{topic}-0/{SEGMENT}"))
    if not segments:
        pytest.skip("the broker's log is not on this machine, so its append times can't be set back")
    times = [1_700_000_000_000, 1_600_000_000_123, 1_650_000_000_456]
    assert odd_records.set_append_times(segments[0], times) >= len(times)
    config = stack.config({topic: {}})

    archive_once(config, topic, engine=engine)

    expected = from_kafka(stack, topic, 1)
    assert {record.timestamp for record in expected} == set(times)
    assert_equal(expected, from_archive(config, topic, 1))


def test_header_names_that_are_not_utf8_come_back(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(1)
    sent = odd_records.produce_binary_names(stack.bootstrap_servers, topic)
    config = stack.config({topic: {}})

    archive_once(config, topic, engine=engine)

    with ReplayConsumer(load_config(config)) as consumer:
        consumer.subscribe([topic])
        got = [headers for batch in consumer.batches() for headers in batch.column("headers").to_pylist()]
    assert [tuple((header["key"], header["value"]) for header in headers) for headers in got] == list(sent)


def test_a_second_run_goes_on_where_the_first_ended(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    for turn in range(3):
        stack.produce(topic, *({"value": f"{turn}-{number}", "partition": number % 2} for number in range(100)))
        archive_once(config, topic, engine=engine)
        assert_equal(from_kafka(stack, topic, 2), from_archive(config, topic, 2))
