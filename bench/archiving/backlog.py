"""Fills a partition with repeated batches of orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data import create_topic
from kafka.protocol.producer import ProduceRequest
from stored_size import PARTITIONS, one_partition

from archiver.codecs import Codec
from archiver.kafka import BrokerClient
from archiver.wire import encode_batches

DIFFERENT = 100_000
"""How many orders there are before they repeat: 30 MB, more than any window of the compressors."""
WITHOUT_TOPIC_IDS = 12


def batches(codec: Codec) -> tuple[bytes, ...]:
    encoded = encode_batches(one_partition(DIFFERENT * PARTITIONS), compression=codec)
    return tuple(bytes(8) + bytes(encoded.batch(index)[8:]) for index in range(len(encoded)))


def fill(bootstrap: str, topic: str, parts: tuple[bytes, ...], size: int) -> int:
    create_topic(bootstrap, topic, 1)
    records = 0
    with BrokerClient({"bootstrap.servers": bootstrap}) as client:
        for part in _up_to(size, parts):
            _append(client, topic, part)
            records += int.from_bytes(part[57:61], "big")
    return records


def _up_to(size: int, parts: tuple[bytes, ...]) -> Iterator[bytes]:
    while size > 0:
        for part in parts:
            if size > 0:
                size -= len(part)
                yield part


def _append(client: BrokerClient, topic: str, batch: bytes) -> None:
    node, _ = client.leaders.leader(topic, 0)
    kind = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topic_data=[kind(name=topic, partition_data=[kind.PartitionProduceData(index=0, records=batch)])],
        max_version=WITHOUT_TOPIC_IDS,
    )
    answer: Any = client.leaders.ask(node, topic, request)
    code = answer.responses[0].partition_responses[0].error_code
    if code:
        raise RuntimeError(f"the broker refuses a batch with error {code}")
