"""Several nodes serve one archive."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.archive.job_runs import archive_once
from tests.support.kafka.java_records import java
from tests.support.servers.free_ports import free_port
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.stack import Stack, unique
from tests.support.timing.eventually import eventually

_LOG = logging.getLogger(__name__)
pytestmark = pytest.mark.integration

PARTITIONS = 4
RECORDS = 6_000
T = TypeVar("T")
TIMEOUT_S = 60.0
NODES = 2
HEARTBEAT = "300ms"
LOST_AFTER = "3s"


@pytest.fixture(scope="module")
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic(PARTITIONS)
    messages = [{"value": b"%d" % at + b"x" * 200, "partition": at % PARTITIONS} for at in range(RECORDS)]
    stack.produce(topic, *messages, batch_num_messages=20)
    serve = {"refresh": "200ms", "heartbeat": HEARTBEAT, "lost_after": LOST_AFTER}
    config = stack.config({topic: {}}, serve=serve)
    archive_once(config)
    return config, topic


def member(bootstrap: str, group: str, **options: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            "max.partition.fetch.bytes": 4_000,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 50,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **options,
        }
    )


class Readers:
    def __init__(self, bootstrap: str, topic: str, count: int, *, records: int, per_second: int) -> None:
        self.group = unique("group")
        self.seen: set[tuple[int, int]] = set()
        self.delivered = 0
        self.errors: list[str] = []
        self._bootstrap, self._topic, self._records = bootstrap, topic, records
        self._pause = 100 / per_second
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def wait(self, seconds: float) -> bool:
        return self._over.wait(seconds)

    def _read(self) -> None:
        reading = member(self._bootstrap, self.group, **{"auto.offset.reset": "earliest"})
        reading.subscribe([self._topic])
        while not self._over.is_set():
            messages = reading.consume(100, 0.2)
            good = [message for message in messages if message.error() is None]
            self.errors += [message.error().name() for message in messages if message.error() is not None]
            self.seen |= {(polled.partition(), polled.offset()) for polled in good}
            self.delivered += len(good)
            if len(self.seen) >= self._records:
                self._over.set()
            if good:
                try:
                    reading.commit(asynchronous=False)
                except KafkaException as error:
                    self.errors.append(error.args[0].name())
            self._over.wait(self._pause)
        reading.close()


def coordinator_or_none(bootstrap: str, group: str) -> str | None:
    """Return the coordinator's address, or None if librdkafka left the node."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        node = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S).coordinator
    except KafkaException:
        return None
    return f"{node.host}:{node.port}"


def coordinator_of(bootstrap: str, group: str) -> str:
    coordinator: str | None = eventually(
        lambda: coordinator_or_none(bootstrap, group), f"{group} has a coordinator", seconds=TIMEOUT_S, every=0.1
    )
    assert coordinator is not None
    return coordinator


def kill_while_they_read(nodes: Nodes, readers: Readers, *, every: float) -> int:
    kills = index = 0
    while not readers.wait(every):
        index = (index + 1) % len(nodes.ports)
        coordinator = coordinator_or_none(nodes.bootstrap, readers.group) if kills % 2 == 0 else None
        if coordinator is not None:
            index = nodes.ports.index(int(coordinator.rpartition(":")[2]))
        nodes.kill(index)
        kills += 1
        nodes.start(index)
        _LOG.info("%d kills, %d delivered, errors %s", kills, readers.delivered, sorted(set(readers.errors)))
    return kills


def test_nodes_are_killed_and_a_group_goes_on(archived: tuple[Path, str]) -> None:
    config, topic = archived
    with (
        Nodes(config, NODES) as nodes,
        Readers(nodes.bootstrap, topic, 2, records=RECORDS, per_second=350) as readers,
    ):
        assert kill_while_they_read(nodes, readers, every=3.0) >= 1
    assert readers.seen == {(number % PARTITIONS, number // PARTITIONS) for number in range(RECORDS)}


def test_processes_are_one_cluster_and_start_again(archived: tuple[Path, str]) -> None:
    config, topic = archived
    first, second = two_free_ports()
    command = [sys.executable, "-m", "archiver", "serve", "kafka", "--processes", "2", "--json"]
    listen = ["--listen", f"127.0.0.1:{first}", "--config", str(config)]
    with subprocess.Popen([*command, *listen], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert {line["advertise"] for line in lines} == {f"127.0.0.1:{first}", f"127.0.0.1:{second}"}
        children = psutil.Process(process.pid).children(recursive=True)
        listening = {
            connection.laddr.port: child
            for child in children
            for connection in child.net_connections()
            if connection.status == "LISTEN"
        }
        assert all_read(f"127.0.0.1:{first}", topic) == all_read(f"127.0.0.1:{second}", topic) == RECORDS
        listening[second].kill()
        assert json.loads(process.stdout.readline())["advertise"] == f"127.0.0.1:{second}"
        assert all_read(f"127.0.0.1:{second}", topic) == RECORDS
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []


def two_free_ports() -> tuple[int, int]:
    while True:
        port = free_port()
        with socket.socket() as neighbour, suppress(OSError, OverflowError):
            neighbour.bind(("127.0.0.1", port + 1))
            return port, port + 1


def all_read(bootstrap: str, topic: str) -> int:
    reading = member(bootstrap, unique("group"), **{"enable.partition.eof": True, "max.partition.fetch.bytes": 1 << 20})
    reading.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    count = ended = 0
    while ended < PARTITIONS:
        message = reading.poll(TIMEOUT_S)
        assert message is not None
        ended += message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF
        count += message.error() is None
    reading.close()
    return count


def told_by(port: int, topic: str) -> tuple[list[int], int, str | None, dict[int, int]]:
    metadata = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=TIMEOUT_S)
    leaders = {partition.id: partition.leader for partition in metadata.topics[topic].partitions.values()}
    return sorted(metadata.brokers), metadata.controller_id, metadata.cluster_id, leaders


def test_nodes_share_what_there_is_and_all_tell_the_same(archived: tuple[Path, str]) -> None:
    config, topic = archived
    with Nodes(config, 2) as nodes:
        deadline = time.monotonic() + TIMEOUT_S
        while (views := [told_by(port, topic) for port in nodes.ports])[0] != views[1] or len(views[0][0]) != 2:
            assert time.monotonic() < deadline
        assert set(views[0][3].values()) <= set(views[0][0])
        groups = [unique("group") for _ in range(8)]
        for group in groups:
            committing = member(nodes.bootstrap, group)
            committing.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
            committing.close()
        command = ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", nodes.bootstrap)
        assert set(groups) <= set(java(*command, "--list").split())
        owners = {coordinator_of(f"127.0.0.1:{port}", group) for group in groups for port in nodes.ports}
        assert len(owners) == 2, "the same of both nodes, and some groups for each"


def test_paused_coordinator_commits_nothing_after_a_takeover(archived: tuple[Path, str]) -> None:
    config, topic = archived
    position = TopicPartition(topic, 0, 7)
    group = unique("group")
    with Nodes(config, 2) as nodes:
        first = member(nodes.bootstrap, group)
        commit(first, position)
        index = nodes.ports.index(int(coordinator_of(nodes.bootstrap, group).rpartition(":")[2]))
        nodes.pause(index)
        peer = f"127.0.0.1:{nodes.ports[1 - index]}"
        eventually(
            lambda: coordinator_or_none(peer, group) == peer, f"{peer} coordinates", seconds=TIMEOUT_S, every=0.1
        )
        second = member(peer, group)
        second.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)
        nodes.go_on(index)
        assert committed(second, position) == 9
        commit(first, TopicPartition(topic, 0, 11))  # finds its new coordinator
        assert committed(second, position) == 11
        first.close()
        second.close()


def commit(committing: Consumer, place: TopicPartition) -> None:
    _when_coordinated(lambda: committing.commit(offsets=[place], asynchronous=False))


def committed(asking: Consumer, place: TopicPartition) -> int:
    (position,) = _when_coordinated(lambda: asking.committed([place], TIMEOUT_S))
    return int(position.offset)


def _when_coordinated(ask: Callable[[], T]) -> T:
    """librdkafka's callers must retry if the coordinator moved or loads the group."""
    passing = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")

    def answer() -> tuple[T] | None:
        try:
            return (ask(),)
        except KafkaException as error:
            if error.args[0].name() not in passing:
                raise
            return None

    answered = eventually(answer, "a node coordinates", seconds=TIMEOUT_S, every=0.1)
    assert answered is not None
    return answered[0]
