"""Kafka clients read an archive as docs/compatibility.md says.

`make interop RECORD=1` writes docs/compatibility.json and the page's table. Otherwise results must equal it.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, wait_until_decided
from tests.support.clients import programs
from tests.support.clients.found import FEATURES, MISSING, NONE, PLAIN, PLAIN_RECORDS, keep, kept
from tests.support.clients.in_python import Aiokafka, ConfluentKafka, KafkaPython
from tests.support.clients.java_tools import tools_of
from tests.support.clients.kafka_client import KafkaClient
from tests.support.clients.mirror_maker import mirroring
from tests.support.kafka import odd_records
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.interop

PARTITIONS = 2
NEW = "consumer"
_NUMBERS = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    stack: Stack
    config: Path
    address: str
    odd: str
    plain: str
    times: str
    appended: str

    def topic_for(self, client: KafkaClient) -> str:
        return self.plain if client.name in PLAIN else self.odd


@pytest.fixture(scope="module")
def served(stack: Stack) -> Iterator[Served]:
    odd, times, plain = (stack.topic(PARTITIONS) for _ in range(3))
    appended = stack.topic(1, {"message.timestamp.type": "LogAppendTime"})
    bootstrap = stack.bootstrap_servers
    odd_records.produce_transactions(bootstrap, odd, PARTITIONS)
    odd_records.produce_odd_records(bootstrap, odd, PARTITIONS)
    odd_records.produce_extreme_times(bootstrap, times, PARTITIONS)
    produce_plain_records(stack, plain)
    odd_records.produce_odd_records(bootstrap, appended, 1)
    odd_records.produce_large(bootstrap, appended, 1, 2, seed=4)
    for topic, partitions in ((odd, PARTITIONS), (times, PARTITIONS), (plain, PARTITIONS), (appended, 1)):
        wait_until_decided(stack, topic, partitions)
    config = stack.config({topic: {} for topic in (odd, times, plain, appended)}, serve={"refresh": "200ms"})
    archive_once(config)
    with serving(config) as address:
        yield Served(stack=stack, config=config, address=address, odd=odd, plain=plain, times=times, appended=appended)


def produce_plain_records(stack: Stack, topic: str) -> None:
    for part in range(40):
        made = (
            {
                "key": b"key %d" % number,
                "value": b"value %d of a record" % number,
                "headers": [("part", b"%d" % part), ("number", b"%d" % number)],
                "partition": number % PARTITIONS,
                "timestamp": 1_700_000_000_000 + 1000 * part + number,
            }
            for number in range(250)
        )
        stack.produce(topic, *made)


MADE: dict[str, Callable[[Path], KafkaClient]] = {
    "confluent-kafka": lambda _: ConfluentKafka(),
    "java": lambda _: programs.java_client(),
    "java-3": lambda _: programs.old_java_client(),
    "java-next": lambda _: programs.next_java_client(),
    "kafka-python": lambda _: KafkaPython(),
    "aiokafka": lambda _: Aiokafka(),
    "franz-go": programs.franz_go,
    "sarama": programs.sarama,
    "kafka-go": programs.kafka_go,
    "kafkajs": programs.kafkajs,
    "platformatic": programs.platformatic,
    "rdkafka": programs.rust_rdkafka,
    "rskafka": programs.rskafka,
    "streams": lambda _: programs.kafka_streams(),
    "spark": lambda _: programs.spark_source(),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], KafkaClient]:
    scratch = tmp_path_factory.mktemp("clients")

    @cache
    def make(name: str) -> KafkaClient:
        try:
            return MADE[name](scratch)
        except programs.ToolchainMissing as error:
            pytest.skip(str(error))

    return make


def reads_every_record(client: KafkaClient, served: Served) -> None:
    for topic in (served.plain,) if client.name in PLAIN else (served.odd, served.appended):
        theirs = client.read(served.stack.bootstrap_servers, topic)
        assert len(theirs) > 30
        assert client.read(served.address, topic) == theirs


def test_spark_streams_every_record(served: Served, made: Callable[[str], KafkaClient]) -> None:
    spark = made("spark")
    assert isinstance(spark, programs.ProgramClient)
    theirs = ConfluentKafka().read(served.stack.bootstrap_servers, served.odd)
    assert spark.stream(served.address, served.odd) == theirs


def test_mirror_maker_copies_a_topic_and_its_groups(served: Served, tmp_path: Path) -> None:
    client, group = ConfluentKafka(), f"mirrored-{next(_NUMBERS)}"
    theirs = client.read(served.address, served.odd)
    client.read_as_member(served.address, served.odd, group, len(theirs))
    with mirroring(served.address, served.stack.bootstrap_servers, served.odd, group, tmp_path) as mirrored:
        eventually(lambda: len(copied_records(served.stack, mirrored)) >= len(theirs), seconds=180, every=1)
        copied = copied_records(served.stack, mirrored)
        assert [record[2:] for record in copied] == [record[2:] for record in theirs]
        ends = {
            partition: max(entry.offset for entry in copied if entry.partition == partition) + 1 for partition in (0, 1)
        }
        eventually(lambda: committed(served.stack, mirrored, group) == ends, f"{ends}", seconds=180, every=1)


def test_share_groups_are_refused_at_once(served: Served) -> None:
    command = [*map(str, programs.share_group_member()), served.address, served.plain, "shared"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "UnsupportedVersionException\n"


def copied_records(stack: Stack, topic: str) -> list[Seen]:
    if topic not in stack.admin.list_topics(timeout=20).topics:
        return []
    return list(ConfluentKafka().read(stack.bootstrap_servers, topic))


def committed(stack: Stack, topic: str, group: str) -> dict[int, int]:
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in range(PARTITIONS)])
    (answer,) = stack.admin.list_consumer_group_offsets([asked]).values()
    return {partition.partition: partition.offset for partition in answer.result(20).topic_partitions}


def reads_extreme_times(client: KafkaClient, served: Served) -> None:
    theirs = client.read(served.stack.bootstrap_servers, served.times)
    assert len(theirs) == PARTITIONS * len(odd_records.EXTREME_TIMES)
    assert client.read(served.address, served.times) == theirs


def finds_offsets_by_time(client: KafkaClient, served: Served) -> None:
    topic = served.topic_for(client)
    everything = client.read(served.stack.bootstrap_servers, topic)
    times = sorted(record.timestamp for record in everything)
    for start in (0, times[len(times) // 2], times[-1]):
        theirs = client.read(served.stack.bootstrap_servers, topic, start)
        assert 0 < len(theirs) < len(everything) or start == 0
        assert client.read(served.address, topic, start) == theirs


def shares_a_group(client: KafkaClient, served: Served, protocol: str | None = None) -> None:
    group, topic = f"{client.name.rpartition('/')[2]}-{next(_NUMBERS)}", served.topic_for(client)
    theirs = [(record.partition, record.offset) for record in client.read(served.stack.bootstrap_servers, topic)]
    most = len(theirs) + 1
    with ThreadPoolExecutor(2) as pool:
        members = [
            pool.submit(client.read_as_member, served.address, topic, group, most, protocol=protocol) for _ in range(2)
        ]
        seen = [record for member in members for record in member.result()]
    assert sorted(set(seen)) == theirs
    appended = threading.Timer(3.0, append, [served, topic])
    appended.start()
    following = client.read_as_member(served.address, topic, group, 1, protocol=protocol)
    appended.join()
    assert len(following) == 1
    assert following[0] not in theirs


def append(served: Served, topic: str) -> None:
    served.stack.produce(topic, {"key": b"next", "value": b"next", "partition": 1})
    archive_once(served.config, topic)


def shares_a_group_of_the_new_protocol(client: KafkaClient, served: Served) -> None:
    shares_a_group(client, served, NEW)


def its_tools_read_and_move_groups(client: KafkaClient, served: Served) -> None:
    tools, group = tools_of(client.version), f"tools-{next(_NUMBERS)}"
    kafka, archive = served.stack.bootstrap_servers, served.address
    count = len(client.read(kafka, served.odd))
    assert tools.read(archive, served.odd, group, count) == tools.read(kafka, served.odd, group, count)
    assert group in tools.groups(archive)
    ours, theirs = tools.offsets(archive, group), tools.offsets(kafka, group)
    assert ours == theirs
    assert all(offset > 0 for offset, _, _ in ours.values())
    assert len(ours) == PARTITIONS
    tools.begin_again(archive, group, served.odd)
    assert tools.offsets(archive, group) == {partition: (0, end, end) for partition, (_, end, _) in ours.items()}
    tools.forget(archive, group)
    assert group not in tools.groups(archive)


ASKED: dict[str, Callable[[KafkaClient, Served], None]] = {
    "records": reads_every_record,
    "times": reads_extreme_times,
    "by time": finds_offsets_by_time,
    "group": shares_a_group,
    "new group": shares_a_group_of_the_new_protocol,
    "tools": its_tools_read_and_move_groups,
}


@pytest.mark.parametrize("feature", list(FEATURES))
@pytest.mark.parametrize("name", list(MADE))
def test_clients_do_what_the_docs_tell(
    served: Served, made: Callable[[str], KafkaClient], name: str, feature: str
) -> None:
    client = made(name)
    if feature in MISSING.get(name, ()):
        outcome = NONE
    else:
        ASKED[feature](client, served)
        outcome = PLAIN_RECORDS if feature == "records" and client.name in PLAIN else "yes"
    if os.environ.get("ARCHIVER_RECORD"):
        keep(name, client.name, client.version, feature, outcome)
    documented: dict[str, Any] = kept()[name]
    assert documented["features"][feature] == outcome
    assert documented["version"] == client.version
