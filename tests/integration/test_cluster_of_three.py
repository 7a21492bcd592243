"""Three brokers that fail and return."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from confluent_kafka import Producer

from archiver.config import load_config
from archiver.errors import DataLoss
from archiver.ingest.job import JobReport
from archiver.kafka import PartitionFetcher
from tests.support.archive.job_runs import archive_once, numbered, run
from tests.support.archive.readers import from_archive, from_kafka, wait_until_decided
from tests.support.kafka.brokers import NODES, Brokers, eventually
from tests.support.servers.embedded import embedded
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

SHORT_TIMEOUTS = {"socket.timeout.ms": "6000", "socket.connection.setup.timeout.ms": "4000"}
PAUSE = 0.2
"""Between two runs of a job that goes on all the while: brokers that start have two cores with it."""
NAMES = {"kafka-1", "kafka-2", "kafka-3", "seaweedfs", "postgres"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    folder = tmp_path_factory.mktemp("three") / "stack"
    with embedded(folder) as local:
        endpoints = local.up(brokers=3)
        yield Brokers(folder, Stack(endpoints, tmp_path_factory.mktemp("three-scratch")))


@pytest.fixture
def brokers(cluster: Brokers) -> Iterator[Brokers]:
    cluster.whole()
    yield cluster
    for node in NODES:
        cluster.resume(node)
    cluster.up()


class Load:
    def __init__(self, stack: Stack, topic: str, partitions: int) -> None:
        self._producer = patient_producer(stack)
        self._topic = topic
        self._partitions = partitions
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.sent = 0

    def _work(self) -> None:
        while not self._over.wait(0.01):
            for partition in range(self._partitions):
                self._producer.produce(self._topic, b"%d" % self.sent, partition=partition)
                self.sent += 1
            self._producer.poll(0)

    @contextmanager
    def going(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            assert self._producer.flush(60) == 0


def patient_producer(stack: Stack, options: Mapping[str, Any] = MappingProxyType({})) -> Producer:
    return Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "enable.idempotence": True,
            "topic.metadata.refresh.interval.ms": 500,
            "socket.timeout.ms": 3_000,
            "linger.ms": 5,
            "log_level": 0,
            **options,
        }
    )


def transactional(stack: Stack) -> Producer:
    producer = patient_producer(stack, {"transactional.id": unique("tx")})
    producer.init_transactions(60)
    return producer


def begin(producer: Producer, topic: str, count: int, partitions: int = 1) -> None:
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(60) == 0


def configured(stack: Stack, *topics: str, **archive: Any) -> Path:
    kafka = SHORT_TIMEOUTS | {"fetch.max.bytes": "20000"}
    return stack.config({topic: {} for topic in topics}, kafka=kafka, archive=archive)


def assert_archived(stack: Stack, config: Path, topic: str, partitions: int = 1) -> None:
    expected = from_kafka(stack, topic, partitions)
    assert expected
    assert from_archive(config, topic, partitions) == expected


def losses(report: JobReport) -> dict[int | None, Exception]:
    return {partition: error for topic in report.topics for partition, error in topic.failures}


def test_status_tells_every_node(brokers: Brokers) -> None:
    document = local(brokers, "status")
    assert document["ready"]
    assert document["parts"].keys() == NAMES
    addresses = [document["parts"][f"kafka-{node}"]["addresses"][f"kafka-{node}"] for node in NODES]
    assert document["endpoints"]["kafka"].split(",") == addresses
    assert load_config(brokers.stack.config_path).kafka["bootstrap.servers"].split(",") == addresses


def local(brokers: Brokers, *words: str, exit_code: int = 0) -> Any:
    where = str(brokers.stack.endpoints.directory)
    # A process of its own: typer changes the environment while it parses, and threads of the test read it meanwhile.
    command = [str(Path(sys.executable).with_name("archiver")), "local", *words, "--dir", where, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == exit_code, done.stderr
    return json.loads(done.stdout)


def test_what_kafka_keeps_for_itself_outlives_a_node(brokers: Brokers) -> None:
    stack = brokers.stack
    topic = stack.topic()
    producer = transactional(stack)
    begin(producer, topic, 1)
    producer.commit_transaction(60)
    consumer = stack.consumer()
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(1) is not None, "a group reads")
    consumer.commit()
    consumer.close()
    topics = brokers.admin().list_topics(timeout=10).topics
    for name in ("__transaction_state", "__consumer_offsets", topic):
        assert all(len(partition.replicas) == 3 for partition in topics[name].partitions.values()), name


def test_leaders_move_under_load(brokers: Brokers) -> None:
    stack, topic = brokers.stack, brokers.stack.topic(2)
    config = configured(stack, topic)
    load = Load(stack, topic, 2)
    with load.going():
        for node in (1, 2, 3, 1):
            brokers.move_leader(topic, node, partition=0)
            brokers.move_leader(topic, node % 3 + 1, partition=1)
            archive_once(config)
    archive_once(config)
    assert_archived(stack, config, topic, 2)
    assert len(from_kafka(stack, topic, 2)) == load.sent


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_a_transaction_outlives_its_leader(brokers: Brokers, ending: str) -> None:
    """Its records have one epoch and its marker the next, where the archive ends."""
    stack, topic = brokers.stack, brokers.topic((1, 2, 3))
    config = configured(stack, topic)
    stack.produce(topic, *numbered(range(5)))
    producer = transactional(stack)
    begin(producer, topic, 10)
    brokers.move_leader(topic, 2)
    producer.commit_transaction(60) if ending == "commit" else producer.abort_transaction(60)
    wait_until_decided(stack, topic, 1)
    for _ in range(2):
        archive_once(config)
    assert_archived(stack, config, topic)
    stack.produce(topic, *numbered(range(5)))
    archive_once(config)
    assert_archived(stack, config, topic)


def test_a_rolling_restart_amid_transactions_and_fetches(brokers: Brokers) -> None:
    stack, topic = brokers.stack, brokers.stack.topic(3)
    config = configured(stack, topic)
    stack.produce(topic, *({"value": b"%d" % n * 40, "partition": n % 3} for n in range(3_000)))
    over, reports = threading.Event(), list[JobReport]()

    def archive() -> None:
        while not over.wait(PAUSE):
            reports.append(run(config))

    archiving = threading.Thread(target=archive)
    archiving.start()
    try:
        producer = transactional(stack)
        for node in NODES:
            begin(producer, topic, 60, partitions=3)
            assert local(brokers, "down", f"kafka-{node}")["stopped"] == [f"kafka-{node}"]
            for number in range(60):
                producer.produce(topic, b"%d" % number, partition=number % 3)
            if node == 2:
                health = {name: part["health"] for name, part in local(brokers, "status", exit_code=1)["parts"].items()}
                assert health == dict.fromkeys(NAMES, "ready") | {"kafka-2": "stopped"}
            assert local(brokers, "up")["started"] == [f"kafka-{node}"]
            producer.abort_transaction(60) if node == 2 else producer.commit_transaction(60)
            brokers.whole(topic)
    finally:
        over.set()
        archiving.join()
    named = [error for report in reports for error in losses(report).values()]
    assert not [error for error in named if isinstance(error, DataLoss) or not error.retryable], named
    archive_once(config)
    assert_archived(stack, config, topic, 3)


def test_an_unclean_election_is_a_loss_only_of_what_was_archived(brokers: Brokers) -> None:
    stack = brokers.stack
    ahead, behind = (brokers.topic((1, 2), unclean_leader_election_enable="true") for _ in range(2))
    config = configured(stack, ahead, behind)
    for topic in (ahead, behind):
        stack.produce(topic, *numbered(range(100)))
    archive_once(config)
    brokers.suspend(2)
    eventually(lambda: brokers.in_sync(ahead) == brokers.in_sync(behind) == {1}, "1 is alone in sync")
    for topic in (ahead, behind):
        stack.produce(topic, *numbered(range(100, 150)), acks=1)
    archive_once(config, ahead)
    archived = from_archive(config, ahead, 1)
    assert len(archived) == 150
    brokers.end(1, killed=True)
    brokers.resume(2)
    eventually(lambda: brokers.leader(ahead) == brokers.leader(behind) == 2, "2 leads")
    for topic in (ahead, behind):
        stack.produce(topic, *numbered(range(200, 280)))
    for _ in range(2):
        report = run(config)
        (loss,) = losses(report).values()
        assert isinstance(loss, DataLoss)
        assert (loss.context["topic"], loss.context["diverging"]) == (ahead, "[100, 150)")
    assert from_archive(config, ahead, 1) == archived
    assert_archived(stack, config, behind)
    brokers.up()
    assert losses(run(config)).keys() == {0}
    assert_archived(stack, config, behind)


def test_a_leader_has_its_readers_ask_a_replica(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers do so for a reader's rack. The archiver names none, but brokers may have their own selector."""
    stack, topic, asked = brokers.stack, brokers.topic((1, 2)), set[int]()
    config = configured(stack, topic)
    made, followed = PartitionFetcher._request, PartitionFetcher._of_replica

    def request(fetcher: PartitionFetcher, *given: int) -> Any:
        message = made(fetcher, *given)
        message.rack_id = "rack-2"
        return message

    def of_replica(fetcher: PartitionFetcher, replica: int, request: Any) -> Any:
        asked.add(replica)
        return followed(fetcher, replica, request)

    monkeypatch.setattr(PartitionFetcher, "_request", request)
    monkeypatch.setattr(PartitionFetcher, "_of_replica", of_replica)
    producer = transactional(stack)
    for ending in (producer.abort_transaction, producer.commit_transaction):
        begin(producer, topic, 50)
        ending(60)
    wait_until_decided(stack, topic, 1)
    archive_once(config)
    assert asked == {2}
    assert_archived(stack, config, topic)


def test_partitions_move_to_other_brokers(brokers: Brokers) -> None:
    stack, topic = brokers.stack, brokers.topic((1, 2), (2, 3))
    config = configured(stack, topic)
    load = Load(stack, topic, 2)
    with load.going():
        for replicas in ((2, 3), (3,), (1, 3), (1, 2)):
            brokers.reassign(topic, replicas, partition=0)
            brokers.reassign(topic, replicas[::-1], partition=1)
            archive_once(config)
    archive_once(config)
    assert_archived(stack, config, topic, 2)


def test_a_controller_falls_silent_and_comes_back(brokers: Brokers) -> None:
    """It also leads a partition: other nodes take over both while it believes that it has them."""
    stack = brokers.stack
    lost = brokers.controller()
    topic = brokers.topic((lost, *(node for node in NODES if node != lost)))
    config = configured(stack, topic)
    stack.produce(topic, *numbered(range(50)))
    archive_once(config)
    brokers.suspend(lost)
    eventually(lambda: brokers.controller() != lost, "another controller is active")
    producer = patient_producer(stack)
    for number in range(50, 100):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0
    archive_once(config)
    brokers.resume(lost)
    stack.produce(topic, *numbered(range(100, 150)))
    archive_once(config)
    assert_archived(stack, config, topic)
    assert len(from_archive(config, topic, 1)) == 150
