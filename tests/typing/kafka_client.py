"""Types of `archiver.kafka`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type
from uuid import UUID

from archiver.kafka import (
    BrokerClient,
    EpochEnd,
    Fetched,
    OpenTransaction,
    PartitionFetcher,
    TopicDescription,
    log_reader,
    open_transactions,
)
from archiver.wire import DecodedBatches


def client(client: BrokerClient) -> None:
    assert_type(client.cluster_id(), str)
    assert_type(client.topics(), tuple[str, ...])
    assert_type(client.describe(["orders"]), dict[str, TopicDescription])
    assert_type(client.list_offsets("orders", [0, 1], "latest_stable"), dict[int, int])
    assert_type(client.list_offsets("orders", [0], 1_700_000_000_000), dict[int, int])
    assert_type(client.end_of_epoch("orders", {0: 3}), dict[int, EpochEnd])
    assert_type(client.epoch_before("orders", 0, 100, since=3), EpochEnd | None)
    assert_type(client.log_sizes("orders", [0]), dict[int, int])
    assert_type(open_transactions(client, "orders", [0]), dict[int, tuple[OpenTransaction, ...]])


def description(topic: TopicDescription) -> None:
    assert_type(topic.topic_id, UUID | None)
    assert_type(topic.partitions[0].leader, int | None)
    assert_type(topic.partitions[0].leader_epoch, int)


def fetcher(client: BrokerClient) -> None:
    with PartitionFetcher({"bootstrap.servers": "localhost:9092"}, "orders", None, 0) as fetcher:
        assert_type(fetcher.fetch(0, max_bytes=1 << 20, committed=False), Fetched)
        assert_type(fetcher.batches(0, 100, cut_head=True, last_epoch=2), Iterator[DecodedBatches])
    assert_type(log_reader(client, "orders", None)(0, 0, 100), Iterator[DecodedBatches])


def fetched(answer: Fetched) -> None:
    assert_type(answer.data, bytes)
    assert_type(answer.high_watermark, int)
    assert_type(answer.epoch_end, int | None)
