"""`archiver verify --against-kafka`."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import TopicPartition

from archiver.config import load_config
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.readers import from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def compared(config: object, topic: str) -> VerifiedTopic:
    report = Verify(load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(compares=True)).run()  # type: ignore[arg-type]
    assert report.failed == ()
    return report.topics[0]


def test_a_log_that_is_compacted_later_is_no_fault(stack: Stack) -> None:
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
    topic = stack.topic(1, settings | {"max.compaction.lag.ms": "300", "delete.retention.ms": "86400000"})
    config = stack.config({topic: {}})
    archived = 0
    for turn in range(4):
        stack.produce(topic, *({"key": b"k%d" % (n % 7), "value": b"%d/%d" % (turn, n)} for n in range(20)))
        archived += archive_once(config).records
        time.sleep(0.3)
    eventually(lambda: len(from_kafka(stack, topic, 1)) < archived, "the log is compacted", seconds=90, every=1)
    result = compared(config, topic)
    assert (result.faults, result.rows) == ((), archived)
    assert any("compacted" in note for note in result.notes)


def test_a_log_that_begins_within_a_range_is_compared_from_there(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(100)))
    archive_once(config)
    stack.admin.delete_records([TopicPartition(topic, 0, 37)])[TopicPartition(topic, 0)].result(30)
    result = compared(config, topic)
    assert (result.faults, result.rows, result.compared_rows) == ((), 100, 63)


def test_a_log_that_was_made_again_is_a_fault(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    stack.delete_topic(topic)
    stack.topic(name=topic)
    stack.produce(topic, *numbered(range(20, 30)))
    assert {fault.kind for fault in compared(config, topic).faults} == {"kafka"}
