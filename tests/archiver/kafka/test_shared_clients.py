"""Ranges that are read one after the other share a client; those side by side, and those that fail, don't."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from archiver.errors import DataLoss
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.source import KafkaSource
from archiver.kafka.shared_clients import client_of, sharing_clients
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster, fetched
from tests.support.kafka.record_batches import Record, build

BATCH = build([Record()] * 5)
PLANNED = PlannedRange(partition=0, start_offset=0, end_offset=5, leader_epoch=0, last_epoch=-1, owns_head=True)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster(brokers=1) as made:
        made.answers[FetchRequest] = lambda broker, request: fetched(BATCH, end=5)
        yield made


def rows(cluster: FakeCluster) -> int:
    source = KafkaSource(options=cluster.options, topic="t", topic_id=TOPIC_ID)
    return sum(each.records.num_rows for each in source.batches(PLANNED))


def test_ranges_one_after_the_other_connect_once(cluster: FakeCluster) -> None:
    with sharing_clients():
        assert [rows(cluster) for _ in range(3)] == [5, 5, 5]
    assert len(cluster.asked_for(ApiVersionsRequest)) == 2, "the first one looks for the cluster, then asks its leader"
    assert [rows(cluster), rows(cluster)] == [5, 5]
    assert len(cluster.asked_for(ApiVersionsRequest)) == 6, "without a block each has a client of its own"


def test_each_range_asks_who_leads_its_topic_and_whether_it_is_the_same(cluster: FakeCluster) -> None:
    with sharing_clients():
        assert rows(cluster) == 5
        assert len(cluster.asked_for(MetadataRequest)) == 1
        cluster.topic_id = type(TOPIC_ID)(int=8)
        with pytest.raises(DataLoss, match="created again"):
            rows(cluster)


def test_a_client_is_lent_to_one_user_at_a_time(cluster: FakeCluster) -> None:
    with sharing_clients():
        with client_of(cluster.options) as first, client_of(cluster.options) as second:
            assert first is not second
        with client_of(cluster.options) as again, client_of(cluster.options | {"client.id": "other"}) as other:
            assert again is second  # the one that came back first
            assert other.options.client_id == "other"


def test_a_client_whose_user_failed_is_not_lent_again(cluster: FakeCluster) -> None:
    with sharing_clients():
        with pytest.raises(ValueError, match="broken"), client_of(cluster.options) as failed:
            raise ValueError("broken")
        with client_of(cluster.options) as next_one:
            assert next_one is not failed


def test_the_end_of_the_block_closes_its_clients(cluster: FakeCluster) -> None:
    with sharing_clients(), client_of(cluster.options) as client:
        assert client.topics() == ("t",)
    with pytest.raises(RuntimeError, match="closed"):
        client.topics()


def test_another_thread_has_its_own_clients(cluster: FakeCluster) -> None:
    seen: list[object] = []

    def look() -> None:
        with client_of(cluster.options) as client:
            seen.append(client)

    with sharing_clients():
        look()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        look()
    assert seen[0] is seen[2] is not seen[1]
