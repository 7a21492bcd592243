"""Clients read the endpoint as they read Kafka."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Place
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, seen_from, wait_until_decided
from tests.support.kafka import odd_records
from tests.support.kafka.java_records import java
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS = 2
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    address: str
    config: Path
    topics: dict[str, int]


@pytest.fixture(scope="module")
def served(stack: Stack) -> Iterator[Served]:
    created, appended = stack.topic(PARTITIONS), stack.topic(1, {"message.timestamp.type": "LogAppendTime"})
    bootstrap = stack.bootstrap_servers
    odd_records.produce_transactions(bootstrap, created, PARTITIONS)
    odd_records.produce_odd_records(bootstrap, created, PARTITIONS)
    odd_records.produce_extreme_times(bootstrap, created, PARTITIONS)
    odd_records.produce_odd_records(bootstrap, appended, 1)
    odd_records.produce_large(bootstrap, appended, 1, 3, seed=4)
    aborting = odd_records.rdkafka(bootstrap, **{"transactional.id": appended})
    aborting.init_transactions(30)
    aborting.begin_transaction()
    aborting.produce(appended, b"aborted")
    aborting.abort_transaction(30)
    topics = {created: PARTITIONS, appended: 1}
    for topic, partitions in topics.items():
        wait_until_decided(stack, topic, partitions)
    config = stack.config({topic: {} for topic in topics}, serve={"refresh": "200ms"})
    archive_once(config)
    with serving(config) as address:
        yield Served(address=address, config=config, topics=topics)


def consumer(address: str, **options: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "receive.message.max.bytes": 200_000_000,
            **options,
        }
    )


def by_librdkafka(address: str, topic: str, partitions: int, **options: Any) -> list[Seen]:
    reading = consumer(address, **options)
    try:
        reading.list_topics(topic, TIMEOUT_S)
        return [record for partition in range(partitions) for record in seen_from(reading, topic, partition)]
    finally:
        reading.close()


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_librdkafka_reads_the_same_records(stack: Stack, served: Served, level: str) -> None:
    for topic, partitions in served.topics.items():
        theirs = by_librdkafka(stack.bootstrap_servers, topic, partitions)
        ours = by_librdkafka(served.address, topic, partitions, **{"isolation.level": level})
        assert ours == theirs != []


def test_small_fetches_and_all_partitions_at_once(stack: Stack, served: Served) -> None:
    topic = next(iter(served.topics))
    theirs = by_librdkafka(stack.bootstrap_servers, topic, PARTITIONS)
    reading = consumer(served.address, **{"max.partition.fetch.bytes": 100})
    reading.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen: list[tuple[int, int, bytes | None]] = []
    ended: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline
        for message in reading.consume(1000, 0.05):
            if message.error() is None:
                seen.append((message.partition(), message.offset(), message.value()))
            else:
                ended.add(message.partition())
    reading.close()
    assert sorted(seen, key=lambda record: record[:2]) == [
        (record.partition, record.offset, record.value) for record in theirs
    ]


async def by_aiokafka(address: str, topic: str, partitions: int) -> list[tuple[Any, ...]]:
    reading = AIOKafkaConsumer(
        bootstrap_servers=address, enable_auto_commit=False, isolation_level="read_committed", request_timeout_ms=20_000
    )
    await reading.start()
    try:
        places = [Place(topic, partition) for partition in range(partitions)]
        reading.assign(places)
        await reading.seek_to_beginning(*places)
        ends = await reading.end_offsets(places)
        seen = []
        while [await reading.position(position) for position in places] != [ends[position] for position in places]:
            for records in (await reading.getmany(timeout_ms=200)).values():
                seen += records
        return sorted(
            (
                message.partition,
                message.offset,
                message.timestamp,
                message.timestamp_type,
                message.key,
                message.value,
                message.headers,
            )
            for message in seen
        )
    finally:
        await reading.stop()


def test_aiokafka_reads_the_same_records(stack: Stack, served: Served) -> None:
    for topic, partitions in served.topics.items():
        theirs = asyncio.run(by_aiokafka(stack.bootstrap_servers, topic, partitions))
        assert asyncio.run(by_aiokafka(served.address, topic, partitions)) == theirs != []


def console(address: str, topic: str, count: int) -> list[str]:
    shown = ("timestamp", "offset", "headers", "key", "epoch")
    options = [part for column in shown for part in ("--formatter-property", f"print.{column}=true")]
    named = ["--bootstrap-server", address, "--topic", topic, "--partition", "0", "--offset", "earliest"]
    return java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *named,
        "--max-messages",
        str(count),
        "--isolation-level",
        "read_committed",
        *options,
    ).splitlines()


def offsets(address: str, topics: Mapping[str, int], spec: OffsetSpec) -> list[int]:
    admin = AdminClient({"bootstrap.servers": address})
    asked = {TopicPartition(topic, number): spec for topic, count in topics.items() for number in range(count)}
    return [answer.result(TIMEOUT_S).offset for answer in admin.list_offsets(asked).values()]


def test_kafkas_own_tools_tell_the_same(stack: Stack, served: Served) -> None:
    topic = next(iter(served.topics))
    count = sum(record.partition == 0 for record in by_librdkafka(stack.bootstrap_servers, topic, 1))
    ours = console(served.address, topic, count)
    assert ours == console(stack.bootstrap_servers, topic, count)
    assert len(ours) >= count > 100
    output = java("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", served.address, "--topic", topic)
    ends = offsets(stack.bootstrap_servers, {topic: PARTITIONS}, OffsetSpec.latest())
    assert output.split() == [f"{topic}:{partition}:{end}" for partition, end in enumerate(ends)]


@pytest.mark.parametrize("spec", [OffsetSpec.earliest(), OffsetSpec.latest()], ids=["earliest", "latest"])
def test_ends_are_found_as_in_kafka(stack: Stack, served: Served, spec: OffsetSpec) -> None:
    assert offsets(served.address, served.topics, spec) == offsets(stack.bootstrap_servers, served.topics, spec)


@pytest.mark.parametrize("time_ms", [0, 1_700_000_000_123, 2**62])
def test_times_are_found_as_in_kafka(stack: Stack, served: Served, time_ms: int) -> None:
    """Kafka may name a record of an aborted transaction; the endpoint names the next visible one."""
    spec = OffsetSpec.for_timestamp(time_ms)
    ours, theirs = (offsets(item, served.topics, spec) for item in (served.address, stack.bootstrap_servers))
    given = {topic: by_librdkafka(stack.bootstrap_servers, topic, count) for topic, count in served.topics.items()}
    places = [(topic, number) for topic, count in served.topics.items() for number in range(count)]
    for (topic, partition), our, their in zip(places, ours, theirs, strict=True):
        later = [item.offset for item in given[topic] if item.partition == partition and item.offset >= their >= 0]
        assert our == min(later, default=their)


def test_who_waits_at_the_end_gets_the_next_commit(stack: Stack, served: Served) -> None:
    appended = list(served.topics)[1]
    reading = consumer(served.address, **{"enable.partition.eof": False})
    reading.list_topics(appended, TIMEOUT_S)
    _, end = reading.get_watermark_offsets(TopicPartition(appended, 0), TIMEOUT_S)
    reading.assign([TopicPartition(appended, 0, end)])
    assert reading.poll(0.3) is None
    stack.produce(appended, {"value": b"tail"})
    archive_once(served.config, appended)
    message = reading.poll(TIMEOUT_S)
    assert message is not None
    assert (message.error(), message.offset(), message.value()) == (None, end, b"tail")
    reading.close()


def test_producers_are_refused(served: Served) -> None:
    topic = next(iter(served.topics))
    producer = odd_records.rdkafka(served.address)
    errors: list[Any] = []
    producer.produce(topic, b"no", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert [error.name() for error in errors] == ["TOPIC_AUTHORIZATION_FAILED"]


def read_as_member(address: str, topic: str, strategy: str, seen: list[tuple[int, int]], count: int) -> None:
    reading = consumer(
        address,
        **{
            "group.id": strategy,
            "partition.assignment.strategy": strategy,
            "enable.partition.eof": False,
            "session.timeout.ms": 6_000,
        },
    )
    reading.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    while len(seen) < count and time.monotonic() < deadline:
        messages = reading.consume(500, 0.1)
        assert all(message.error() is None for message in messages)
        seen += [(message.partition(), message.offset()) for message in messages]
        if messages:
            reading.commit(asynchronous=False)
    reading.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_of_a_group_share_the_partitions(stack: Stack, served: Served, strategy: str) -> None:
    topic = next(iter(served.topics))
    theirs = [(record.partition, record.offset) for record in by_librdkafka(stack.bootstrap_servers, topic, PARTITIONS)]
    seen: list[tuple[int, int]] = []
    arguments = (served.address, topic, strategy, seen, len(theirs))
    members = [threading.Thread(target=read_as_member, args=arguments) for _ in range(2)]
    for member in members:
        member.start()
    for member in members:
        member.join(TIMEOUT_S)
    assert sorted(set(seen)) == theirs


def test_offsets_of_a_group_outlive_the_server(served: Served) -> None:
    topic = next(iter(served.topics))
    places = [TopicPartition(topic, partition, 10 + partition) for partition in range(PARTITIONS)]
    committing = consumer(served.address, **{"group.id": "lasting"})
    committing.commit(offsets=places, asynchronous=False)
    committing.close()
    with serving(served.config) as address:
        asking = consumer(address, **{"group.id": "lasting"})
        assert [entry.offset for entry in asking.committed(places, TIMEOUT_S)] == [10, 11]
        asking.close()
        command = ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", address)
        output = java(*command, "--describe", "--group", "lasting")
        lines = sorted(line.split()[1:4] for line in output.splitlines() if line.startswith("lasting"))
        assert lines == [[topic, str(position.partition), str(position.offset)] for position in places]
