"""Unopenable topics get retriable errors."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kio.schema.errors import ErrorCode

from archiver.archive.topic_archive import TopicArchive
from archiver.config.model import ServeSection
from archiver.errors import BadSegment, NoTable, StorageUnavailable
from archiver.serve.kafka.watch import Watch
from archiver.serve.reading import ServedTopic, ServedTopics, Workers
from catalog.errors import NotOurTable
from catalog.registry import GroupOffset
from schema_mapping.errors import ContextError
from tests.support.archive.archived_batches import archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.free_ports import free_port
from tests.support.servers.served_lake import ServedLake, Wire, request
from tests.support.timing.eventually import eventually

ORDERS = "orders"
AWAY = StorageUnavailable("the store doesn't answer")
SECONDS = 20.0
LEADERLESS = ErrorCode.leader_not_available


class Closed:
    def __init__(self, lake: Lake) -> None:
        self.error: ContextError | None = AWAY
        self.attempts = 0
        self.lake = lake
        self._open = lake.archive
        lake.archive = self._archive  # type: ignore[method-assign]

    def _archive(self, **options: Any) -> TopicArchive:
        self.attempts += 1
        if self.error is not None:
            raise self.error
        return self._open(**options)


@pytest.fixture
def closed(tmp_path: Path) -> Closed:
    return Closed(archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10))


@pytest.fixture
def served(closed: Closed) -> Iterator[ServedLake]:
    with ServedLake(closed.lake) as endpoint:
        yield endpoint


@pytest.fixture
def wire(served: ServedLake) -> Iterator[Wire]:
    with Wire(served.port) as client:
        yield client


def opened(served: ServedLake) -> ServedTopic:
    async def named() -> ServedTopic | None:
        return await served.topics.named(ORDERS)

    topic: ServedTopic | None = eventually(lambda: served.call(named()), f"{ORDERS} opens")
    assert topic is not None
    return topic


def errors(wire: Wire, name: str) -> set[ErrorCode]:
    (described,) = wire.ask(request(3, 12, topic_id=None, name=name)).topics
    (paged,) = wire.ask(request(75, 0, name=name, cursor=None, response_partition_limit=1)).topics
    (placed,) = wire.ask(request(2, 8, name=name, timestamp=-1, partition_index=0)).topics[0].partitions
    (ended,) = wire.ask(request(23, 4, topic=name, partition=0, leader_epoch=0)).topics[0].partitions
    (set_up,) = wire.ask(request(32, 4, resource_type=2, resource_name=name, configuration_keys=None)).results
    values = {"topic": name, "partition": 0, "fetch_offset": 0, "max_bytes": 1 << 20, "partition_max_bytes": 1 << 20}
    more = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": ()}
    (fetched,) = wire.ask(request(1, 12, **values, **more)).responses[0].partitions
    is_away = described.error_code == LEADERLESS
    assert fetched.error_code == (ErrorCode.kafka_storage_error if is_away else described.error_code)
    return {answer.error_code for answer in (described, paged, placed, ended, set_up)}


def test_who_asks_for_a_closed_topic_is_told_to_ask_again(wire: Wire) -> None:
    began = time.monotonic()
    assert errors(wire, ORDERS) == {LEADERLESS}
    assert time.monotonic() - began > 0.4, "librdkafka asks thousands of times a second"
    assert errors(wire, "no_such_topic") == {ErrorCode.unknown_topic_or_partition}


@pytest.mark.parametrize(
    ("error", "is_trouble"),
    [
        (NoTable("there is none"), False),
        (NotOurTable("it is another topic's"), False),
        (BadSegment("the manifest is cut short"), True),
    ],
    ids=lambda each: type(each).__name__,
)
def test_consumers_go_on_without_a_topic_that_never_opens(
    wire: Wire, closed: Closed, served: ServedLake, error: ContextError, is_trouble: bool
) -> None:
    closed.error = error
    time.sleep(0.1)  # what was found out before holds for so long
    assert errors(wire, ORDERS) == {ErrorCode.unknown_topic_or_partition}
    assert bool(served.topics.troubles) is is_trouble


def test_lists_of_all_topics_have_the_closed_ones(wire: Wire, closed: Closed, served: ServedLake) -> None:
    (described,) = wire.ask(request(3, 12, topics=None)).topics
    assert (described.name, described.error_code) == (ORDERS, LEADERLESS)
    (paged,) = wire.ask(request(75, 0, topics=(), cursor=None, response_partition_limit=1)).topics
    assert (paged.name, paged.error_code) == (ORDERS, LEADERLESS)
    closed.error = None

    def listed() -> Any:
        return wire.ask(request(3, 12, topics=None)).topics[0]

    eventually(lambda: not listed().error_code, "a list tries again")
    assert len(listed().partitions) == 1
    assert not served.topics.troubles


def test_names_that_clients_make_up_are_in_no_list(wire: Wire, closed: Closed, served: ServedLake) -> None:
    async def made_up() -> ContextError | None:
        async def fail(_: str) -> ServedTopic:
            raise AWAY

        closed.lake.names = lambda: frozenset({"kafka.made_up"})  # type: ignore[method-assign]
        with Workers(1) as workers:
            topics = ServedTopics(closed.lake, fail, workers)
            assert await topics.named("made_up") is None
            assert await topics.named("without_table") is None
            assert not topics.troubles
            assert topics.trouble("without_table") is None
            return topics.trouble("made_up")

    assert served.call(made_up()) is AWAY


def test_it_is_not_tried_again_at_once(closed: Closed) -> None:
    with ServedLake(closed.lake, interval=60.0) as served, Wire(served.port) as wire:
        for _ in range(3):
            errors(wire, ORDERS)
            wire.ask(request(3, 12, topics=None))
    assert closed.attempts == 1


@pytest.mark.parametrize("version", [2, 9, 10])
def test_offsets_of_closed_topics_are_retriable(closed: Closed, version: int) -> None:
    closed.error = None
    with ServedLake(closed.lake) as before:
        topic_id, offsets = before.topics.open[0].topic_id, before.offsets
    offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=4)})
    closed.error = AWAY
    named = {"group_id": "g", "name": ORDERS, "topic_id": topic_id, "group_instance_id": None, "member_id": ""}
    placed = {"partition_index": 0, "committed_offset": 7, "generation_id_or_member_epoch": -1}
    asked = {"partition_indexes": (0,), "member_epoch": -1}
    with ServedLake(closed.lake, offsets=offsets) as served, Wire(served.port) as wire:
        (partition,) = wire.ask(request(8, version, **named, **placed)).topics[0].partitions
        assert partition.error_code == ErrorCode.coordinator_load_in_progress
        for topics in ({}, {"topics": None}):
            answer = wire.ask(request(9, version, **named, **asked, **topics))
            (group,) = answer.groups if version >= 8 else (answer,)
            assert group.error_code == ErrorCode.coordinator_load_in_progress
        closed.error = None
        opened(served)
        answer = wire.ask(request(9, version, **named, **asked))
        (group,) = answer.groups if version >= 8 else (answer,)
        assert (group.error_code, group.topics[0].partitions[0].committed_offset) == (ErrorCode.none, 4)


def test_operators_are_told(closed: Closed) -> None:
    port = free_port()
    with (
        ServedLake(closed.lake, watch=Watch(ServeSection(metrics=f"127.0.0.1:{port}"))),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer,
    ):
        health = json.load(answer)
    assert health["status"] == "degraded"
    assert health["reasons"] == [f"Topic {ORDERS} can't be opened: {AWAY}"]


@contextmanager
def consuming(port: int, **options: Any) -> Iterator[Consumer]:
    defaults = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", **defaults, **options})
    try:
        consumer.subscribe([ORDERS])
        yield consumer
    finally:
        consumer.close()


def next_offset(consumer: Consumer) -> int | None:
    message = consumer.poll(SECONDS)
    assert message is not None
    assert message.error() is None
    return message.offset()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_new_member_gets_partitions_once_topic_opens(closed: Closed, served: ServedLake, protocol: str) -> None:
    with consuming(served.port, **{"group.protocol": protocol}) as consumer:
        reported, until = [], time.monotonic() + 2.0
        while time.monotonic() < until:
            message = consumer.poll(0.1)
            reported += [] if message is None else [message.error()]
        closed.error = None
        began = time.monotonic()
        while (message := consumer.poll(SECONDS)) is not None and message.error() is not None:
            reported.append(message.error())
        assert message is not None
        assert message.offset() == 0
        assert len(reported) <= 1, "librdkafka says once that there is no such topic, where members assign"
        assert time.monotonic() - began < SECONDS / 2


def test_a_classic_member_that_has_partitions_keeps_them(closed: Closed, served: ServedLake) -> None:
    closed.error = None
    opened(served)
    options = {"topic.metadata.refresh.interval.ms": 2000}  # librdkafka forgets after three
    with consuming(served.port, **options) as consumer:
        assert [next_offset(consumer) for _ in range(10)] == list(range(10))
        closed.error = AWAY
        served.topics._topics.clear()
        until = time.monotonic() + 4.0
        while time.monotonic() < until:
            assert consumer.poll(0.1) is None
            assert [partition.topic for partition in consumer.assignment()] == [ORDERS]
        assert closed.attempts > 2
        closed.error = None
        consumer.seek(TopicPartition(ORDERS, 0, 3))
        assert next_offset(consumer) == 3
