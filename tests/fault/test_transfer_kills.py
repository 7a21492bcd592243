"""`archiver replay --to-kafka` killed repeatedly."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from archiver.fault_points import TransferPoint
from tests.fault.transfer_process import replay
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, from_kafka
from tests.support.engine.forked import forked, run_forked
from tests.support.kafka.own_broker import OwnBroker, own_broker
from tests.support.servers.stack import Stack, unique
from tests.support.timing.eventually import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

KILLS = 30
PARTITIONS = 3
RECORDS = 90_000
RATE = 1_000


@pytest.fixture
def elsewhere(stack: Stack, tmp_path: Path) -> Iterator[OwnBroker]:
    with own_broker(stack, tmp_path) as broker:
        yield broker


def content(records: list[Seen]) -> list[tuple[object, ...]]:
    return [(record.partition, record.timestamp, record.key, record.value, record.headers) for record in records]


def produced(stack: Stack, count: int, noise: random.Random) -> str:
    topic = stack.topic(PARTITIONS)
    messages = (
        {
            "key": noise.choice([None, b"", b"%d" % number]),
            "value": noise.choice([None, b"", noise.randbytes(noise.randrange(60))]),
            "partition": number % PARTITIONS,
            "timestamp": 1_600_000_000_000 + noise.randrange(10**9),
            "headers": [("n", b"%d" % number), ("n", None)] if number % 5 == 0 else None,
        }
        for number in range(count)
    )
    stack.produce(topic, *messages)
    return topic


def transfer(config: Path, topic: str, target: str, *options: object, fault: str | None = None) -> int:
    arguments = (topic, "--config", str(config), "--to-kafka", target, *map(str, options))
    done = run_forked(replay, *arguments, fault=fault)
    assert fault is not None or done.returncode == 0, done.stdout + done.stderr
    return done.returncode


def ends_before_it_is_killed(
    config: Path, topic: str, target: str, *options: object, seconds: float, once_started: bool, folder: Path
) -> bool:
    arguments = (topic, "--config", str(config), "--to-kafka", target, *map(str, options))
    with forked(replay, *arguments, folder=folder) as (process, output):
        if once_started:
            eventually(
                lambda: b'"transfer_started"' in output.read_bytes() or not process.is_alive(), "a start", seconds=200
            )
        process.join(seconds)
        return not process.is_alive()


def assert_the_map_holds(lines: list[str], source: list[Seen], copy: list[Seen]) -> None:
    by_source = {(record.partition, record.offset): record for record in source}
    by_target = {(record.partition, record.offset): record for record in copy}
    places = [
        ((line["partition"], line["source"] + i), (line["partition"], line["target"] + i))
        for line in map(json.loads, lines)
        for i in range(line["count"])
    ]
    assert len(places) == len(source)
    assert dict(places).keys() == by_source.keys()
    assert {target for _, target in places} == by_target.keys()
    assert all(content([by_source[before]]) == content([by_target[after]]) for before, after in places)


@pytest.mark.parametrize("point", [*TransferPoint])
def test_a_kill_at_any_step_leaves_each_record_once(stack: Stack, tmp_path: Path, point: TransferPoint) -> None:
    topic = produced(stack, 3_000, random.Random(point))
    config = stack.config({topic: {}})
    archive_once(config, topic)
    target, file = unique("copy"), tmp_path / "map.jsonl"
    own = ("--create", "--progress-topic", unique("progress"), "--offset-map", file)
    assert transfer(config, topic, target, *own, "--rate", 2_000, fault=f"{point}:kill") == -signal.SIGKILL
    transfer(config, topic, target, *own)
    source, copy = from_kafka(stack, topic, PARTITIONS), from_kafka(stack, target, PARTITIONS)
    assert content(source) == content(copy)
    assert_the_map_holds(file.read_text().splitlines(), source, copy)


@pytest.mark.slow
def test_thirty_kills_leave_each_record_once_in_another_cluster(
    stack: Stack, elsewhere: OwnBroker, tmp_path: Path
) -> None:
    seed = int(os.environ.get("ARCHIVER_KILL_SEED") or time.time_ns())
    noise = random.Random(seed)
    topic = produced(stack, RECORDS, noise)
    config = stack.config({topic: {}})
    archive_once(config, topic)
    group, target, file = unique("group"), unique("copy"), tmp_path / "map.jsonl"
    committed = {partition: noise.randrange(RECORDS // PARTITIONS) for partition in range(PARTITIONS)}
    places = [TopicPartition(topic, partition, offset) for partition, offset in committed.items()]
    updates = [ConsumerGroupTopicPartitions(group, places)]

    def is_committed() -> bool:  # a cluster that has just started is still loading its coordinators
        result = stack.admin.alter_consumer_group_offsets(updates)[group].result(30)
        return not any(partition.error for partition in result.topic_partitions)

    eventually(is_committed, f"offsets of {group}", every=0.2)
    second = elsewhere.stack
    own = ("--bootstrap", second.bootstrap_servers, "--create", "--offset-map", file)

    for killed in range(KILLS):
        late = noise.random() < 0.9  # most kills come while records are moved, some before
        seconds = noise.uniform(0, 3.5)
        ended = ends_before_it_is_killed(
            config, topic, target, *own, "--rate", RATE, seconds=seconds, once_started=late, folder=tmp_path
        )
        assert not ended, (tmp_path / "errors").read_text() + f"ended after {killed} kills, seed {seed}"
    transfer(config, topic, target, *own, "--translate-groups", group)

    source, copy = from_kafka(stack, topic, PARTITIONS), from_kafka(second, target, PARTITIONS)
    assert len(source) == RECORDS
    assert content(source) == content(copy), f"ARCHIVER_KILL_SEED={seed}"
    assert_the_map_holds(file.read_text().splitlines(), source, copy)
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(target, number) for number in range(PARTITIONS)])]
    moved = second.admin.list_consumer_group_offsets(asked)[group].result(30)
    for entry in moved.topic_partitions:
        left = [
            record
            for record in source
            if record.partition == entry.partition and record.offset >= committed[entry.partition]
        ]
        rest = [record for record in copy if record.partition == entry.partition and record.offset >= entry.offset]
        assert content(left) == content(rest), f"ARCHIVER_KILL_SEED={seed}"
