"""The embedded stack does what it promises, judged by other people's clients."""

from __future__ import annotations

import psycopg
import pytest

from tests.stack import Stack

pytestmark = pytest.mark.integration


def test_topic_round_trip_with_any_timestamp_and_large_messages(stack: Stack):
    topic = stack.topic()
    big = b"x" * (20 << 20)
    stack.produce(
        topic,
        {"value": b"past", "timestamp": 1},
        {"value": b"future", "timestamp": 4_102_444_800_000},
        {"value": big},
        message_max_bytes=64 << 20,
    )
    consumer = stack.consumer(fetch_message_max_bytes=64 << 20)
    try:
        consumer.subscribe([topic])
        read = []
        while len(read) < 3:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            read.append(message)
    finally:
        consumer.close()
    assert [m.value() for m in read] == [b"past", b"future", big]
    assert [m.timestamp()[1] for m in read[:2]] == [1, 4_102_444_800_000]


def test_databases_are_fresh(stack: Stack):
    with psycopg.connect(stack.database()) as first:
        first.execute("create table mine (id int)")
    with psycopg.connect(stack.database()) as second:
        found = second.execute("select count(*) from pg_tables where tablename = 'mine'").fetchone()
    assert found == (0,)
