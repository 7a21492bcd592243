"""Partitions of a served topic."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions

from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.servers.endpoint_here import serving_here
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

PARTITIONS = 4
SECONDS = 60.0


class FromTheEnd:
    def __init__(self, address: str, topic: str, **options: Any) -> None:
        self._states: dict[str, str] = {}
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": unique("latest"),
                "auto.offset.reset": "latest",
                "topic.metadata.refresh.interval.ms": 1000,
                "statistics.interval.ms": 200,
                "stats_cb": self._take_in,
                **options,
            }
        )
        self._consumer.subscribe([topic])

    def waits_in(self, partitions: int) -> None:
        until = time.monotonic() + SECONDS
        while list(self._states.values()).count("active") < partitions:
            assert time.monotonic() < until, self._states
            assert self._consumer.poll(0.1) is None

    def read(self, count: int) -> list[tuple[int, int]]:
        until = time.monotonic() + SECONDS
        seen: list[tuple[int, int]] = []
        while len(seen) < count:
            assert time.monotonic() < until, seen
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.append((message.partition(), message.offset()))
        self._consumer.close()
        return sorted(seen)

    def _take_in(self, text: str) -> None:
        topics = json.loads(text)["topics"]
        partitions = topics.get(self._topic, {}).get("partitions", {})
        self._states = {name: values["fetch_state"] for name, values in partitions.items() if name != "-1"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_at_the_end_get_a_partitions_first_records(stack: Stack, protocol: str) -> None:
    topic = stack.topic(PARTITIONS)
    stack.produce(topic, *({"value": b"before", "partition": 0} for _ in range(5)))
    config = stack.config({topic: {}}, serve={"refresh": "200ms", "group_heartbeat": "500ms"})
    archive_once(config)
    with serving_here(load_config(config, {"ARCHIVER__SERVE__LISTEN": "127.0.0.1:0"})) as address:
        reader = FromTheEnd(address, topic, **{"group.protocol": protocol})
        reader.waits_in(PARTITIONS)
        stack.produce(topic, *({"value": b"after", "partition": number % 2} for number in range(20)))
        archive_once(config)
        assert reader.read(20) == [*((0, 5 + number) for number in range(10)), *((1, number) for number in range(10))]


def test_partitions_are_those_of_the_last_commit(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    stack.produce(topic, {"value": b"x", "partition": 1})
    config = stack.config({topic: {}}, serve={"refresh": "200ms"})
    archive_once(config)
    with serving_here(load_config(config, {"ARCHIVER__SERVE__LISTEN": "127.0.0.1:0"})) as address:
        ours = Consumer({"bootstrap.servers": address, "group.id": unique("any")})
        theirs = Consumer({"bootstrap.servers": stack.bootstrap_servers, "group.id": unique("any")})

        def count() -> int:
            return len(ours.list_topics(topic, timeout=20).topics[topic].partitions)

        def ends(consumer: Consumer) -> list[Any]:
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            return [consumer.get_watermark_offsets(partition, timeout=20) for partition in places]

        assert count() == PARTITIONS
        assert ends(ours) == ends(theirs)
        stack.admin.create_partitions([NewPartitions(topic, PARTITIONS + 2)])[topic].result(20)
        stack.produce(topic, {"value": b"x", "partition": 1})
        archive_once(config)
        until = time.monotonic() + SECONDS
        while count() < PARTITIONS + 2:
            assert time.monotonic() < until
            ours.get_watermark_offsets(TopicPartition(topic, 1), timeout=20)
        for client in (ours, theirs):
            client.close()
