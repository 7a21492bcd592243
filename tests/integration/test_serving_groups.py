"""Groups of real clients and tools."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from tests.support.archive.job_runs import archive_once
from tests.support.kafka.java_records import java
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack, unique
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

PARTITIONS, RECORDS = 6, 300
TIMEOUT_S = 60.0
EVERYTHING = {(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS)}
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    address: str
    config: Path
    topic: str


@pytest.fixture(scope="module")
def served(stack: Stack) -> Iterator[Served]:
    topic = stack.topic(PARTITIONS, name=unique("groups"))
    values = [{"value": b"%d" % number, "partition": index} for index in range(PARTITIONS) for number in range(RECORDS)]
    stack.produce(topic, *values)
    times = {"refresh": "200ms", "group_heartbeat": "200ms", "group_session": "3s"}
    config = stack.config({topic: {}}, serve=times)
    archive_once(config)
    with serving(config) as address:
        yield Served(address=address, config=config, topic=topic)


def member(address: str, group: str, *, protocol: str = "consumer", **options: Any) -> Consumer:
    classic = {"session.timeout.ms": 6000} if protocol == "classic" else {}
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
            **classic,
            **options,
        }
    )


@dataclass(slots=True)
class Reading:
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)
    errors: list[KafkaError] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.seen.keys() >= EVERYTHING

    def poll(self, reader: Consumer) -> None:
        messages = reader.consume(50, 0.1)
        self.errors += [message.error() for message in messages if message.error() is not None]
        self.seen.update((message.partition(), message.offset()) for message in messages if message.error() is None)


def until(condition: Any, *readers: Consumer, reading: Reading | None = None, seconds: float = TIMEOUT_S) -> Reading:
    reading = reading or Reading()
    deadline = time.monotonic() + seconds
    while not condition(reading):
        assert time.monotonic() < deadline, (
            reading.errors,
            len(reading.seen),
            [reader.assignment() for reader in readers],
        )
        for reader in readers:
            reading.poll(reader)
    return reading


def shares(*readers: Consumer) -> list[int]:
    return sorted(len(reader.assignment()) for reader in readers)


@pytest.mark.parametrize("subscription", ["name", "pattern"])
def test_members_share_the_partitions_evenly(served: Served, subscription: str) -> None:
    group = unique("g")
    readers = [member(served.address, group) for _ in range(2)]
    for item in readers:
        item.subscribe([served.topic if subscription == "name" else f"^{served.topic[:-2]}.*"])
    reading = until(lambda _: shares(*readers) == [3, 3], *readers)
    third = member(served.address, group)
    third.subscribe([served.topic])
    readers.append(third)
    until(lambda _: shares(*readers) == [2, 2, 2], *readers, reading=reading)
    assigned = [(item.topic, item.partition) for reader in readers for item in reader.assignment()]
    assert sorted(assigned) == [(served.topic, number) for number in range(PARTITIONS)]
    until(lambda progress: progress.is_done, *readers, reading=reading)
    for item in readers:
        item.close()
    assert not reading.errors


def test_static_member_returns_to_its_partitions_and_offsets(served: Served) -> None:
    group = unique("g")
    static, dynamic = member(served.address, group, **{"group.instance.id": "i"}), member(served.address, group)
    for item in (static, dynamic):
        item.subscribe([served.topic])
    until(lambda progress: shares(static, dynamic) == [3, 3] and progress.seen, static, dynamic)
    assigned = static.assignment()
    places = [TopicPartition(item.topic, item.partition, 290, metadata="ends with NUL") for item in assigned]
    static.commit(offsets=places, asynchronous=False)
    static.close()
    back = member(served.address, group, **{"group.instance.id": "i"})
    back.subscribe([served.topic])
    until(lambda _: len(back.assignment()) == 3, back, dynamic)
    assert sorted(item.partition for item in back.assignment()) == sorted(item.partition for item in assigned)
    assert shares(back, dynamic) == [3, 3], "nothing moved"
    committed = back.committed(back.assignment(), TIMEOUT_S)
    assert {(item.offset, item.metadata) for item in committed} == {(290, "ends with NUL")}
    second = member(served.address, group, **{"group.instance.id": "i"})
    second.subscribe([served.topic])
    with pytest.raises(AssertionError):
        until(lambda _: second.assignment(), second, back, dynamic, seconds=2.0)
    for item in (second, back, dynamic):
        item.close()


def kafkas_tool(address: str, *arguments: str) -> list[list[str]]:
    output = java(GROUP_COMMAND, "--bootstrap-server", address, *arguments)
    return [line.split() for line in output.splitlines() if line.strip()]


def ours(served: Served, *arguments: str, address: str | None = None) -> Any:
    command = ["groups", *arguments, "--json", "--config", str(served.config)]
    command += ["--bootstrap-server", address or served.address]
    done = CliRunner().invoke(app, command)
    return json.loads(done.stdout or done.stderr.splitlines()[-1])


def test_tools_tell_of_groups_of_both_protocols_and_move_them(served: Served) -> None:
    classic, consumer = unique("classic"), unique("consumer")
    readers = [member(served.address, classic, protocol="classic"), member(served.address, consumer)]
    for reader in readers:
        reader.subscribe([served.topic])
    until(lambda _: shares(*readers) == [PARTITIONS, PARTITIONS], *readers)
    for reader in readers:
        reader.commit(offsets=[TopicPartition(served.topic, 0, 100)], asynchronous=False)

    listed = {words[0]: words[1:] for words in kafkas_tool(served.address, "--list", "--state", "--type")}
    assert listed[classic] == ["Classic", "Stable"]
    assert listed[consumer] == ["Consumer", "Stable"]
    both = ["--group", classic, "--group", consumer]
    members = kafkas_tool(served.address, "--describe", *both, "--members", "--verbose")
    whole = f"{served.topic}:0,1,2,3,4,5"
    assert {words[0] for words in members if any(whole in word for word in words)} == {classic, consumer}
    offsets = kafkas_tool(served.address, "--describe", *both)
    of_first = {words[0]: words[3:6] for words in offsets if words[1:3] == [served.topic, "0"]}
    assert of_first == {group: ["100", str(RECORDS), str(RECORDS - 100)] for group in (classic, consumer)}

    groups = {entry["group"]: entry for entry in ours(served, "describe", classic, consumer)["groups"]}
    for group, kind in ((classic, "classic"), (consumer, "consumer")):
        assert (groups[group]["protocol"], groups[group]["state"], len(groups[group]["members"])) == (kind, "Stable", 1)
        assert len(groups[group]["members"][0]["partitions"]) == PARTITIONS
        assert [entry["lag"] for entry in groups[group]["partitions"]] == [RECORDS - 100] + [None] * (PARTITIONS - 1)
        refused = ours(served, "reset", group, "--to-latest")
        assert "stop its consumers" in refused["error"]["message"]
        assert "stop its consumers" in ours(served, "delete", group, "--yes")["error"]["message"]
    for reader in readers:
        reader.close()

    asked = ["--reset-offsets", *both, "--topic", served.topic, "--to-offset", "7", "--execute"]
    moved = [words for words in kafkas_tool(served.address, *asked) if words[-1] == "7"]
    assert len(moved) == 2 * PARTITIONS
    kafkas_tool(served.address, "--delete-offsets", "--group", consumer, "--topic", f"{served.topic}:5")
    for group in (classic, consumer):
        (described,) = ours(served, "describe", group)["groups"]
        left = PARTITIONS - (group == consumer)
        assert [entry["committed"] for entry in described["partitions"]] == [7] * left
        assert described["state"] == "Empty"
        dry = ours(served, "reset", group, "--shift-by", "-3", "--dry-run")
        assert [(entry["before"], entry["after"]) for entry in dry["partitions"]] == [(7, 4)] * left
        ours(served, "reset", group, "--topic", served.topic, "--partition", "5", "--to-offset", "100000")
        ours(served, "reset", group, "--topic", served.topic, "--partition", "0", "--by-duration", "1h")
        (described,) = ours(served, "describe", group)["groups"]
        assert [entry["committed"] for entry in described["partitions"]] == [0, 7, 7, 7, 7, RECORDS]
    assert ours(served, "delete", classic, consumer, "--yes")["groups"] == [classic, consumer]
    assert "no such group" in ours(served, "describe", classic)["error"]["message"]


def test_kafkas_console_consumer_reads_with_the_new_protocol(served: Served) -> None:
    named = ["--bootstrap-server", served.address, "--group", unique("g"), "--from-beginning"]
    output = java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *named,
        "--include",
        f"{served.topic[:-1]}.",
        "--command-property",
        "group.protocol=consumer",
        "--max-messages",
        str(PARTITIONS * RECORDS),
    )
    assert Counter(output.split()) == Counter({str(number): PARTITIONS for number in range(RECORDS)})


def test_a_group_has_one_protocol_at_a_time(served: Served) -> None:
    group = unique("g")
    first = member(served.address, group)
    first.subscribe([served.topic])
    until(lambda progress: progress.seen, first)
    classic = member(served.address, group, protocol="classic")
    classic.subscribe([served.topic])
    refused = until(lambda progress: progress.errors, classic)
    assert refused.errors[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    first.commit(asynchronous=False)
    first.close()
    until(lambda _: classic.assignment(), classic)
    late = member(served.address, group)
    late.subscribe([served.topic])
    refused = until(lambda progress: progress.errors, late)
    assert refused.errors[0].code() == KafkaError._FATAL
    assert "group id does not exist" in refused.errors[0].str()
    late.close()
    classic.close()


KILLED = """
import sys
from confluent_kafka import Consumer
options = {"group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
reader = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], **options})
reader.subscribe([sys.argv[3]])
while not reader.consume(5, 0.2):
    pass
print("reads", flush=True)
while True:
    reader.consume(5, 0.2)
"""
"""A member that reads and never commits what it has read."""


@dataclass(slots=True)
class Busy:
    served: Served
    group: str
    seed: int
    stop: threading.Event
    calm: threading.Event
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)
    reader: Consumer | None = None

    def run(self) -> None:
        chance = random.Random(self.seed)
        while not self.stop.is_set():
            self.reader = member(self.served.address, self.group)
            self.reader.subscribe([self.served.topic])
            while not self.stop.is_set():
                self._step(self.reader)
                time.sleep(0.5 if chance.random() < 0.05 else 0.05)
                if chance.random() < 0.02 and not self.calm.is_set():
                    break
            self.reader.close()

    def _step(self, reader: Consumer) -> None:
        messages = [polled for polled in reader.consume(4, 0.1) if polled.error() is None]
        self.seen.update((message.partition(), message.offset()) for message in messages)
        ends = {message.partition(): message.offset() + 1 for message in messages}
        if ends:
            with suppress(KafkaException):  # it has lost a partition meanwhile
                places = [TopicPartition(self.served.topic, number, offset) for number, offset in ends.items()]
                reader.commit(offsets=places, asynchronous=False)


def test_twenty_changing_members_miss_no_record_nor_get_stuck(served: Served) -> None:
    group, stop, calm = unique("g"), threading.Event(), threading.Event()
    members = [Busy(served, group, seed, stop, calm) for seed in range(20)]
    threads = [threading.Thread(target=item.run) for item in members]
    for item in threads:
        item.start()
    command = [sys.executable, "-c", KILLED, served.address, group, served.topic]
    killed = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        time.sleep(3.0)
        for item in killed:
            item.kill()
        calm.set()
        eventually(
            lambda: is_settled(served, group, members),
            lambda: str(ours(served, "describe", group)),
            seconds=TIMEOUT_S,
            every=0.2,
        )
    finally:
        stop.set()
        for item in killed:
            item.kill()
            item.communicate()
        for thread in threads:
            thread.join(TIMEOUT_S)
    assert not any(thread.is_alive() for thread in threads)


def is_settled(served: Served, group: str, members: list[Busy]) -> bool:
    seen = set().union(*(item.seen for item in members))
    if not seen >= EVERYTHING:
        return False
    (described,) = ours(served, "describe", group)["groups"]
    is_read = described["lag"] == 0 and all(item["member_id"] for item in described["partitions"])
    return is_read and described["state"] == "Stable" and len(described["members"]) == len(members)


@pytest.mark.slow
def test_members_join_again_after_a_restart_of_the_server(served: Served) -> None:
    group = unique("g")
    readers = []
    with serving(served.config) as address:
        for _ in range(2):
            readers.append(member(address, group))
            readers[-1].subscribe([served.topic])
        until(lambda progress: shares(*readers) == [3, 3] and progress.seen, *readers)
        places = [TopicPartition(served.topic, number, RECORDS - 10) for number in range(PARTITIONS)]
        for reader in readers:
            mine = {assigned.partition for assigned in reader.assignment()}
            reader.commit(offsets=[position for position in places if position.partition in mine], asynchronous=False)
    with serving(served.config, address):

        def is_known(_: Reading) -> bool:
            (described,) = ours(served, "describe", group, address=address)["groups"] or [{"members": []}]
            return len(described["members"]) == 2 and described["state"] == "Stable"

        until(is_known, *readers)
        assert shares(*readers) == [3, 3]
        assert {entry.offset for entry in readers[0].committed(places, TIMEOUT_S)} == {RECORDS - 10}
        for reader in readers:
            reader.close()
