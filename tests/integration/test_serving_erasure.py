"""Erased records of a served topic."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from archiver.config import load_config
from archiver.records.where import Where
from archiver.upkeep.erase.job import Erase
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.endpoint_here import serving_here
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

REFRESH = 1.0
RECORDS = 100
SECONDS = 60.0


def keys(address: str, topic: str) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": unique("reader"), "auto.offset.reset": "earliest"}
        | {"enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[bytes | None] = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is not None:  # the end
            consumer.close()
            return seen
        if message is not None:
            seen.append(message.key())
    raise AssertionError("the end wasn't reached")


def test_an_ended_erasure_is_seen_by_all_nodes_in_time(stack: Stack) -> None:
    topic = stack.topic(1)
    stack.produce(topic, *({"key": b"her" if n % 10 == 3 else b"other", "value": b"v%d" % n} for n in range(RECORDS)))
    path = stack.config({topic: {}}, serve={"refresh": f"{REFRESH:g}s"})
    archive_once(path)
    config = load_config(path, {"ARCHIVER__SERVE__LISTEN": "127.0.0.1:0"})
    with serving_here(config) as first, serving_here(config) as second:
        for address in (first, second):
            assert keys(address, topic).count(b"her") == RECORDS // 10
        Erase(load_config(path), topic, Where.parse("key = 'her'"), engine=InlineEngine()).run()
        ended = time.monotonic()
        began = ended
        while began - ended < 3 * REFRESH:
            for address in (first, second):
                began = time.monotonic()
                seen = keys(address, topic)
                if began - ended > REFRESH:
                    assert seen == [b"other"] * (RECORDS - RECORDS // 10)
