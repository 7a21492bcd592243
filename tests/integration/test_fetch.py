"""Fetched ranges equal confluent-kafka's reading."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from archiver.errors import BrokerUnavailable, DataLoss, UnknownTopic
from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.wire import DecodedBatches, DecodeLimits
from tests.support.archive.readers import wait_until_decided
from tests.support.kafka import odd_records
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

LOG_APPEND = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    offset: int
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def consumed(stack: Stack, topic: str, partition: int = 0) -> list[Seen]:
    seen = []
    consumer = stack.consumer(enable_partition_eof=True)
    consumer.list_topics(topic, 30)  # who knows no leader when offsets are asked for waits half a second
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            headers = tuple((name.encode(), value) for name, value in message.headers() or ())
            kind, timestamp = message.timestamp()
            seen.append(
                Seen(
                    offset=message.offset(),
                    timestamp=(LOG_APPEND if kind == 2 else 0, timestamp),
                    key=message.key(),
                    value=message.value(),
                    headers=headers,
                )
            )
    finally:
        consumer.close()
    return seen


def rows(pieces: list[DecodedBatches]) -> list[Seen]:
    table = pa.Table.from_batches([piece.records for piece in pieces])
    table.validate(full=True)
    return [
        Seen(
            offset=row["offset"],
            timestamp=(
                row["timestamp_type"],
                row["timestamp"] if row["append_timestamp"] is None else row["append_timestamp"],
            ),
            key=row["key"],
            value=row["value"],
            headers=tuple((pair["key"], pair["value"]) for pair in row["headers"]),
        )
        for row in table.to_pylist()
    ]


def options(stack: Stack, **more: str) -> dict[str, str]:
    return {"bootstrap.servers": stack.bootstrap_servers} | more


@pytest.fixture
def broker(stack: Stack) -> Iterator[BrokerClient]:
    with BrokerClient(options(stack)) as client:
        yield client


def fetched(stack: Stack, topic: str, start: int, end: int, partition: int = 0, **how: Any) -> list[DecodedBatches]:
    with BrokerClient(options(stack)) as client:
        topic_id = client.describe([topic])[topic].topic_id
    with PartitionFetcher(options(stack), topic, topic_id, partition) as fetcher:
        pieces = list(fetcher.batches(start, end, **how))
    assert [piece.complete for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(before.next_offset == after.start_offset for before, after in pairwise(pieces))
    assert pieces[-1].next_offset >= end
    return pieces


def whole(stack: Stack, topic: str, partition: int = 0, **how: Any) -> list[DecodedBatches]:
    with BrokerClient(options(stack)) as client:
        start = client.list_offsets(topic, [partition], "earliest")[partition]
        end = client.list_offsets(topic, [partition], "latest_stable")[partition]
    return fetched(stack, topic, start, end, partition, cut_head=True, **how)


def wait_until_stable(broker: BrokerClient, topic: str, end: int) -> None:
    """Abort markers reach the log shortly after the coordinator's answer."""
    eventually(lambda: broker.list_offsets(topic, [0], "latest_stable") == {0: end}, f"{topic} ends at {end}")


@pytest.mark.parametrize("written_by_broker", odd_records.CODECS)
def test_odd_records_in_every_codec_of_client_and_broker(stack: Stack, written_by_broker: str) -> None:
    codec = "producer" if written_by_broker == "none" else written_by_broker  # the broker writes another codec anew
    topic = stack.topic(2, {"compression.type": codec})
    odd_records.produce_odd_records(stack.bootstrap_servers, topic, 2)
    for partition in range(2):
        assert rows(whole(stack, topic, partition)) == consumed(stack, topic, partition)


def test_extreme_times_on_create_and_append_topics(stack: Stack) -> None:
    for config in ({}, {"message.timestamp.type": "LogAppendTime"}):
        topic = stack.topic(1, config)
        odd_records.produce_extreme_times(stack.bootstrap_servers, topic, 1)
        pieces = whole(stack, topic)
        assert [row["timestamp"] for piece in pieces for row in piece.records.to_pylist()] == list(
            odd_records.EXTREME_TIMES
        )
        assert rows(pieces) == consumed(stack, topic)


def test_header_names_of_any_bytes(stack: Stack) -> None:
    topic = stack.topic()
    sent = odd_records.produce_binary_names(stack.bootstrap_servers, topic)
    assert [row.headers for row in rows(whole(stack, topic))] == list(sent)


def test_transactions(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    odd_records.produce_transactions(stack.bootstrap_servers, topic, 1)
    wait_until_decided(stack, topic, 1)
    expected = consumed(stack, topic)
    assert rows(whole(stack, topic)) == expected
    assert rows(whole(stack, topic, max_bytes=1)) == expected
    end = broker.list_offsets(topic, [0], "latest_stable")[0]
    cuts = sorted({0, end, *random.Random(1).sample(range(1, end), 20)})
    seen: list[Seen] = []
    start = 0
    for low, high in pairwise(cuts):
        pieces = fetched(stack, topic, low, high)
        assert pieces[0].start_offset == start
        start = pieces[-1].next_offset
        seen += rows(pieces)
    assert seen == expected


def test_an_open_transaction_ends_what_is_stable(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"before"})
    writer = stack.begun(topic, {"value": b"pending"})
    assert broker.list_offsets(topic, [0], "latest_stable") == {0: 1}
    assert broker.list_offsets(topic, [0], "high_watermark") == {0: 2}
    assert [row.value for row in rows(whole(stack, topic))] == [b"before"]
    writer.abort_transaction(30)
    wait_until_stable(broker, topic, 3)
    assert [row.value for row in rows(whole(stack, topic))] == [b"before"]


def test_a_range_of_aborted_and_control_records_only(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    writer = stack.producer(transactional_id=topic)
    writer.init_transactions(30)
    for _ in range(3):
        writer.begin_transaction()
        writer.produce(topic, b"gone")
        writer.flush(30)
        writer.abort_transaction(30)
    wait_until_stable(broker, topic, 6)
    pieces = whole(stack, topic)
    assert rows(pieces) == []
    assert (pieces[0].start_offset, pieces[-1].next_offset) == (0, 6)


def test_records_of_5_mb_through_small_chunks_and_limits(stack: Stack) -> None:
    topic = stack.topic()
    odd_records.produce_large(stack.bootstrap_servers, topic, 1, 10, seed=5)
    expected = consumed(stack, topic)
    assert rows(whole(stack, topic)) == expected
    assert rows(whole(stack, topic, max_bytes=1000, limits=DecodeLimits(chunk=1))) == expected


def test_many_batches_in_many_pieces(stack: Stack) -> None:
    topic = stack.topic(2)
    odd_records.produce_batch_sizes(stack.bootstrap_servers, topic, 2, [b"a", b"value" * 30, b"\x00" * 3000], seed=1)
    expected = consumed(stack, topic, 1)
    for size in (20_000, 1 << 20, 16 << 20):
        assert rows(whole(stack, topic, 1, max_bytes=size, limits=DecodeLimits(chunk=300_000))) == expected


def test_a_log_that_starts_inside_a_batch(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    stack.produce(topic, *({"value": b"%d" % number} for number in range(100)), linger_ms=500)
    stack.admin.delete_records([TopicPartition(topic, 0, 37)])[TopicPartition(topic, 0)].result(30)
    assert broker.list_offsets(topic, [0], "earliest") == {0: 37}
    pieces = whole(stack, topic)
    assert rows(pieces) == consumed(stack, topic)
    assert pieces[0].start_offset == 37
    assert pieces[0].batches.base_offset[0] < 37
    with pytest.raises(DataLoss, match=r"\[5, 37\)") as caught:
        fetched(stack, topic, 5, 100)
    assert caught.value.context["topic"] == topic


def test_a_log_that_ends_before_the_range(stack: Stack) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"only"})
    with pytest.raises(DataLoss, match="log_end=1"):
        fetched(stack, topic, 5, 10)


def test_compacted_logs_have_gaps(stack: Stack, broker: BrokerClient) -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "200"}
    topic = stack.topic(1, compacted | {"delete.retention.ms": "0", "min.compaction.lag.ms": "0"})
    for turn in range(5):
        stack.produce(topic, *({"key": b"%d" % (n % 7), "value": b"%d" % (turn + n)} for n in range(200)))
        stack.produce(topic, *({"key": b"%d" % (n % 7), "value": None} for n in range(7)))
        time.sleep(0.3)
    stack.produce(topic, {"key": b"last", "value": b"1"})
    eventually(lambda: len(consumed(stack, topic)) <= 300, "the log cleaner compacts", seconds=60, every=1)
    expected = consumed(stack, topic)
    end = broker.list_offsets(topic, [0], "latest_stable")[0]
    assert end > len(expected)
    for cut in (0, 1, 300, 700, end - 1, end):
        assert rows(fetched(stack, topic, 0, cut)) + rows(fetched(stack, topic, cut, end)) == expected


def test_a_topic_created_anew_is_not_taken_for_the_old_one(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"old"})
    old = broker.describe([topic])[topic].topic_id
    assert old is not None
    stack.delete_topic(topic)
    with PartitionFetcher(options(stack), topic, old, 0) as fetcher, pytest.raises(UnknownTopic):
        fetcher.fetch(0)
    stack.topic(name=topic)
    stack.produce(topic, {"value": b"new"})
    with PartitionFetcher(options(stack), topic, old, 0) as fetcher, pytest.raises(DataLoss, match="created again"):
        fetcher.fetch(0)
    with PartitionFetcher(options(stack), topic, None, 0) as fetcher:
        assert [row.value for row in rows(list(fetcher.batches(0, 1)))] == [b"new"]


def test_offsets_by_time_and_epoch(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic(3)
    for number in range(10):
        stack.produce(topic, {"value": b"v", "partition": 1, "timestamp": 1_600_000_000_000 + number * 1000})
    everywhere = {0: 0, 1: 10, 2: 0}
    assert broker.list_offsets(topic, range(3), "latest_stable") == everywhere
    assert broker.list_offsets(topic, range(3), 1_600_000_003_500) == everywhere | {1: 4}
    assert broker.list_offsets(topic, range(3), 1_700_000_000_000) == everywhere
    assert broker.list_offsets(topic, range(3), -5) == dict.fromkeys(range(3), 0)
    described = broker.describe([topic])[topic]
    assert sorted(described.partitions) == [0, 1, 2]
    assert all(partition.leader is not None for partition in described.partitions.values())
    ends = broker.end_of_epoch(topic, {0: 0, 1: described.partitions[1].leader_epoch})
    assert ends[1].end_offset == 10
    assert broker.end_of_epoch(topic, {1: 999}) == {}


def test_the_cluster_names_itself_and_its_topics(stack: Stack, broker: BrokerClient) -> None:
    topic = stack.topic()
    assert topic in broker.topics()
    assert not any(name.startswith("__") for name in broker.topics())
    assert broker.cluster_id() == stack.admin.list_topics(timeout=10).cluster_id


def test_unknown_topics_and_partitions_are_named(broker: BrokerClient, stack: Stack) -> None:
    with pytest.raises(UnknownTopic, match="no_such_topic"):
        broker.describe(["no_such_topic"])
    topic = stack.topic()
    with pytest.raises(UnknownTopic, match=topic):
        broker.list_offsets(topic, [7], "earliest")


def test_nobody_at_the_address(stack: Stack) -> None:
    start = time.monotonic()
    with (
        BrokerClient({"bootstrap.servers": "127.0.0.1:1", "socket.connection.setup.timeout.ms": "500"}) as client,
        pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:1.*REFUSED"),
    ):
        client.cluster_id()
    assert time.monotonic() - start < 2


def test_a_range_may_be_left_early(stack: Stack) -> None:
    topic = stack.topic()
    odd_records.produce_large(stack.bootstrap_servers, topic, 1, 3, seed=6)
    with PartitionFetcher(options(stack), topic, None, 0) as fetcher:
        pieces = fetcher.batches(0, 3, max_bytes=1)
        assert next(pieces).records.num_rows == 1
        pieces.close()  # type: ignore[attr-defined]
        assert next(fetcher.batches(1, 3, max_bytes=16 << 20)).records.num_rows == 2
