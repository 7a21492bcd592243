"""The job from a real broker to a real table, read back by pyiceberg: nothing lost, nothing twice, failures named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from tests.stack import Stack

pytestmark = [
    pytest.mark.integration,
    # PySpark leaves the socket of every collect() to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def run(config: Path, *topics: str) -> JobReport:
    return ArchiveJob(load_config(config), topics).run_once()


def read(stack: Stack, config: Path, topic: str) -> pa.Table:
    return stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow()


def places(table: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in table.column("kafka").to_pylist())


def numbered(count: int, partitions: int) -> list[dict[str, Any]]:
    return [{"key": b"%d" % n, "value": b"v%d" % n, "partition": n % partitions} for n in range(count)]


def test_a_topic_reaches_its_table(stack: Stack):
    topic = stack.topic(3)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(3_000, 3))
    report = run(config, topic)
    assert report.succeeded, report
    (done,) = report.topics
    assert [(each.from_offset, each.to_offset, each.records) for each in done.partitions] == [(0, 1_000, 1_000)] * 3
    assert done.commits == 1
    assert done.files == 3
    table = read(stack, config, topic)
    assert places(table) == [(partition, offset) for partition in range(3) for offset in range(1_000)]
    keys = {(row["kafka"]["partition"], row["kafka"]["offset"]): row["key"]["__raw__"] for row in table.to_pylist()}
    assert keys[1, 7] == b"22"


def test_a_second_run_adds_only_what_is_new(stack: Stack):
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(10, 2))
    assert run(config).succeeded
    again = run(config)
    assert again.succeeded
    assert (again.waves, again.records) == (0, 0)
    stack.produce(topic, *numbered(4, 2))
    assert run(config).records == 4
    assert places(read(stack, config, topic)) == [(partition, offset) for partition in range(2) for offset in range(7)]
