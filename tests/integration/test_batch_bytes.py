"""Batches of librdkafka and broken ones."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from kafka.protocol.producer import ProduceRequest

from archiver.engine.spark import SparkEngine
from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.wire import decode_batches, encode_batches
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive
from tests.support.kafka import odd_records
from tests.support.kafka.record_batches import raw_batch, raw_record
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

WITHOUT_TOPIC_IDS = 12


def raw_log(stack: Stack, topic: str) -> bytes:
    with PartitionFetcher({"bootstrap.servers": stack.bootstrap_servers}, topic, None, 0) as fetcher:
        return bytes(fetcher.fetch(0, max_bytes=64 << 20).data)


def produce_raw(stack: Stack, topic: str, batch: bytes) -> int:
    with BrokerClient({"bootstrap.servers": stack.bootstrap_servers}) as client:
        node, _ = client.leaders.leader(topic, 0)
        topic_type = ProduceRequest.TopicProduceData
        partition = topic_type.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[topic_type(name=topic, partition_data=[partition])],
            max_version=WITHOUT_TOPIC_IDS,
        )
        response: Any = client.leaders.ask(node, topic, request)
        code: int = response.responses[0].partition_responses[0].error_code
        return code


@pytest.mark.parametrize("config", [{}, {"message.timestamp.type": "LogAppendTime"}], ids=["create", "append"])
def test_uncompressed_librdkafka_batches_keep_their_bytes(stack: Stack, config: dict[str, str]) -> None:
    topic = stack.topic(1, config)
    odd_records.produce_odd_records(stack.bootstrap_servers, topic, 1)
    data = raw_log(stack, topic)
    parts = []
    at = 0
    while at < len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        parts.append(data[at : at + size])
        at += size
    plain = [part for part in parts if part[22] & 7 == 0]
    assert plain
    for part in plain:
        decoded = decode_batches(part, start_offset=0, end_offset=1 << 62)
        assert bytes(encode_batches(decoded.records).data) == part


def test_a_broken_producers_batches_reach_the_table_whole(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic()
    values = [b"%d" % number for number in range(6)]
    uneven = [raw_record(delta=0, value=value) for value in values[:3]]
    backwards = [raw_record(delta=2 - number, value=value) for number, value in enumerate(values[3:])]
    assert produce_raw(stack, topic, raw_batch(uneven)) == 0
    assert produce_raw(stack, topic, raw_batch(backwards)) == 0
    stack.produce(topic, {"value": b"after"})
    assert len(by_librdkafka(stack, topic)) == 7
    config = stack.config({topic: {}})
    archive_once(config, topic, engine=engine)
    assert [(record.offset, record.value) for record in from_archive(config, topic, 1)] == list(
        enumerate([*values, b"after"])
    )


def by_librdkafka(stack: Stack, topic: str) -> list[tuple[int, bytes]]:
    consumer = stack.consumer(enable_partition_eof=True)
    consumer.list_topics(topic, 30)  # who knows no leader when offsets are asked for waits half a second
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        seen.append((message.offset(), message.value()))
    consumer.close()
    return seen
