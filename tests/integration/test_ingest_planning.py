"""The offsets that a run archives."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from archiver.config import load_config
from archiver.ingest.events import JobEvent, WavePlanned
from archiver.ingest.job import ArchiveJob, JobReport
from tests.support.archive.job_runs import archive_once, numbered, places, read, values
from tests.support.archive.readers import from_kafka, wait_until_decided
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import comes_true, eventually

pytestmark = pytest.mark.integration

NEW_YEAR = 1_767_225_600_000  # 2026-01-01
TURNS = 12


def test_a_second_run_adds_only_what_is_new(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    archive_once(config)
    again = archive_once(config)
    assert (again.waves, again.records) == (0, 0)
    stack.produce(topic, *numbered(range(4), 2))
    assert archive_once(config).records == 4
    assert places(read(stack, config, topic)) == [(partition, offset) for partition in range(2) for offset in range(7)]


def test_latest_is_decided_once(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {"start_from": "latest"}})
    stack.produce(topic, *numbered(range(10), 2))
    assert archive_once(config).records == 0
    stack.produce(topic, *numbered(range(10, 14), 2))
    add_partition(stack, topic)
    stack.produce(topic, {"value": b"added", "partition": 2})
    archive_once(config)
    assert values(read(stack, config, topic)) == [b"10", b"11", b"12", b"13", b"added"]


def test_a_topic_can_start_at_a_time(stack: Stack) -> None:
    topic = stack.topic()
    start = datetime.fromtimestamp(NEW_YEAR / 1000, UTC).isoformat()
    config = stack.config({topic: {"start_from": start}})
    for number, moment in enumerate((NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 1)):
        stack.produce(topic, {"value": b"%d" % number, "timestamp": moment})
    archive_once(config)
    assert values(read(stack, config, topic)) == [b"1", b"2"]


def add_partition(stack: Stack, topic: str) -> None:
    """The topic has two."""
    stack.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)

    def leader() -> int:
        partitions = stack.admin.list_topics(topic, timeout=30).topics[topic].partitions
        return partitions[2].leader if 2 in partitions else -1

    eventually(lambda: leader() >= 0, "the new partition has a leader")


class AddsPartitions:
    def __init__(self, stack: Stack, topic: str) -> None:
        self._stack = stack
        self._topic = topic

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, WavePlanned) and event.wave == 1:
            add_partition(self._stack, self._topic)
            self._stack.produce(self._topic, {"value": b"added", "partition": 2})


def test_added_partitions_are_in_the_next_wave(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, archive={"task_size": "1B", "tasks_per_partition": 2})
    for number in range(10):  # a batch each, as a batch is never cut
        stack.produce(topic, *numbered(range(number, number + 1)))
    report = _archive_while_partitions_are_added(stack, config, topic)
    assert report.waves > 1, "the first wave was the last"
    assert report.records == 11
    assert (2, 0) in places(read(stack, config, topic))


def test_partitions_added_in_the_last_wave_are_in_the_next_run(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    report = _archive_while_partitions_are_added(stack, config, topic)
    assert (report.waves, report.records) == (1, 10)
    assert archive_once(config).records == 1
    assert (2, 0) in places(read(stack, config, topic))


def _archive_while_partitions_are_added(stack: Stack, config: Path, topic: str) -> JobReport:
    observer = AddsPartitions(stack, topic)
    report = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine()).run_once()
    assert report.succeeded, report
    return report


def test_a_range_of_aborted_records_alone_moves_the_offsets(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.begun(topic, *numbered(range(20))).abort_transaction(30)
    wait_until_decided(stack, topic, 1)
    report = archive_once(config)
    assert (report.records, report.topics[0].files, report.topics[0].commits) == (0, 0, 1)
    assert [(partition.from_offset, partition.to_offset) for partition in report.topics[0].partitions] == [(0, 21)]
    assert archive_once(config).waves == 0


def test_compacted_topic_keeps_gaps_and_tombstones(stack: Stack) -> None:
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
    topic = stack.topic(1, settings | {"max.compaction.lag.ms": "300", "delete.retention.ms": "86400000"})
    config = stack.config({topic: {}})
    for turn in range(TURNS):
        messages = [{"key": b"k%d" % (number % 7), "value": b"%d/%d" % (turn, number)} for number in range(20)]
        stack.produce(topic, *messages, {"key": b"gone", "value": None})
        time.sleep(0.25)
    expected = _after_compaction(stack, topic)
    assert len(expected) < TURNS * 21, "nothing was compacted"
    archive_once(config)
    rows = [(row["kafka"]["offset"], row["key"], row["val"]) for row in read(stack, config, topic).to_pylist()]
    assert sorted(offset for offset, _, _ in rows) == expected
    assert any(value is None for _, _, value in rows), "no tombstone"


def _after_compaction(stack: Stack, topic: str) -> list[int]:
    seen: list[list[int]] = []

    def is_steady() -> bool:
        seen.append([record.offset for record in from_kafka(stack, topic, 1)])
        return len(seen) > 2 and len(seen[-1]) < TURNS * 21 and seen[-1] == seen[-2] == seen[-3]

    comes_true(is_steady, 90, every=1)
    return seen[-1]


def test_a_log_that_starts_inside_a_batch_is_read_from_there(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(100)))
    stack.admin.delete_records([TopicPartition(topic, 0, 37)])[TopicPartition(topic, 0)].result(30)
    archive_once(config)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(37, 100)]
