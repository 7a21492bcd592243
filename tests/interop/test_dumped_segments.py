"""Kafka's DumpLogSegments on a broker and its archive."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import wait_until_decided
from tests.support.kafka import odd_records
from tests.support.kafka.java_records import java
from tests.support.kafka.raw_batches import raw_batches
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.interop

TOOL = ("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log", "--files")
PARTITIONS = 2
PLACED = re.compile(r" position: \d+")
ENCODED = re.compile(r" (size|crc): \d+(?= .*isvalid)")
PLAIN = " compresscodec: none "
TIMES = re.compile(r"^\| offset: \d+ (CreateTime|LogAppendTime)")


@dataclass(frozen=True, slots=True)
class Sides:
    broker: int
    archive: int
    topics: tuple[str, ...]


@pytest.fixture(scope="module")
def sides(stack: Stack) -> Iterator[Sides]:
    odd, sizes, decided = stack.topic(PARTITIONS), stack.topic(PARTITIONS), stack.topic(PARTITIONS)
    appended = stack.topic(PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
    bootstrap = stack.bootstrap_servers
    for topic in (odd, appended):
        odd_records.produce_odd_records(bootstrap, topic, PARTITIONS)
    noise = random.Random(5)
    values = [noise.randbytes(size) for size in (0, 1, 40, 300)]
    odd_records.produce_batch_sizes(bootstrap, sizes, PARTITIONS, values, seed=5)
    commit(bootstrap, decided)
    wait_until_decided(stack, decided, PARTITIONS)
    topics = (odd, sizes, decided, appended)
    config = stack.config({topic: {} for topic in topics})
    archive_once(config)
    with serving(config) as address:
        broker, archive = (int(server.rpartition(":")[2]) for server in (bootstrap, address))
        yield Sides(broker, archive, topics)


def commit(bootstrap: str, topic: str) -> None:
    plain = odd_records.rdkafka(bootstrap)
    writer = odd_records.rdkafka(bootstrap, **{"transactional.id": topic, "compression.type": "zstd"})
    writer.init_transactions(30)
    for turn in range(5):
        writer.begin_transaction()
        for number in range(20):
            writer.produce(topic, b"txn %d %d" % (turn, number), partition=number % PARTITIONS)
            plain.produce(topic, b"plain %d %d" % (turn, number), partition=number % PARTITIONS)
        plain.flush()
        writer.commit_transaction(30)


def said_of(port: int, topic: str, partition: int, folder: Path) -> list[str]:
    """Return lines on batches with records, without details of their encoding.

    For compressed batches these are size, checksum, and the position of later batches.
    """
    folder.mkdir(parents=True)
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(b"".join(raw_batches(port, topic, partition, end_of(port, topic, partition))))
    result: list[str] = []
    is_control = False
    for line in java(*TOOL, str(segment)).splitlines():
        if line.startswith("baseOffset: "):
            assert line.endswith(" isvalid: true"), line
            is_control = " isControl: true " in line
        if not is_control and line.startswith(("baseOffset: ", "| offset: ")):
            result.append(PLACED.sub("", line if PLAIN in line else ENCODED.sub("", line)))
    return result


def test_the_tool_says_the_same_of_both(sides: Sides, tmp_path: Path) -> None:
    codecs, kinds = set(), set()
    for topic in sides.topics:
        for partition in range(PARTITIONS):
            path = tmp_path / f"{topic}-{partition}"
            theirs, ours = (said_of(port, topic, partition, path / str(port)) for port in (sides.broker, sides.archive))
            assert len(theirs) > 20
            assert ours == theirs
            codecs |= {match[1] for line in theirs if (match := re.search(r" compresscodec: (\w+)", line))}
            kinds |= {match[1] for line in theirs if (match := TIMES.match(line))}
            kinds |= {"transaction" for line in theirs if " isTransactional: true " in line}
    assert codecs == set(odd_records.CODECS)
    assert kinds == {"CreateTime", "LogAppendTime", "transaction"}


def end_of(port: int, topic: str, partition: int) -> int:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "ends"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
    finally:
        consumer.close()
    return int(end)
