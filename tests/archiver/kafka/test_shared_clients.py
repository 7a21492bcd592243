"""Consecutive ranges share a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from archiver.errors import BrokerUnavailable, DataLoss
from archiver.ingest.kafka_log.source import KafkaSource
from archiver.ingest.plan.ranges import EpochsBefore, PlannedRange
from archiver.kafka.broker import BrokerClient
from archiver.kafka.shared_clients import SharedClients
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster, fetched
from tests.support.kafka.record_batches import Record, build

UNKNOWN_TOPIC_ID = 100
BATCH = build([Record()] * 5)
PLANNED = PlannedRange(partition=0, start_offset=0, end_offset=5, owns_head=True, epochs=EpochsBefore(archived=0))


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster(brokers=1) as made:
        made.answers[FetchRequest] = lambda broker, request: fetched(BATCH, end=5)
        yield made


def rows(cluster: FakeCluster, shared: SharedClients | None = None) -> int:
    source = KafkaSource(options=cluster.options, topic="t", topic_id=TOPIC_ID)
    return sum(batch.records.num_rows for batch in source.batches(PLANNED, shared))


def test_ranges_one_after_the_other_connect_once(cluster: FakeCluster) -> None:
    with SharedClients([(cluster.options, "t")]) as shared:
        assert [rows(cluster, shared) for _ in range(3)] == [5, 5, 5]
    assert len(cluster.asked_for(ApiVersionsRequest)) == 2, "the first one looks for the cluster, then asks its leader"
    assert len(cluster.asked_for(FetchRequest)) == 3
    assert [rows(cluster), rows(cluster)] == [5, 5]
    assert len(cluster.asked_for(ApiVersionsRequest)) == 6, "without a block each has a client of its own"


def test_their_topics_are_asked_about_at_once(cluster: FakeCluster) -> None:
    asked: list[list[str]] = []

    def metadata(broker: int, request: Any) -> Any:
        asked.append([topic.name for topic in request.topics])
        return cluster.metadata(request)

    cluster.answers[MetadataRequest] = metadata
    other_options = cluster.options | {"client.id": "other"}
    with SharedClients(
        [(cluster.options, "u"), (cluster.options, "t"), (other_options, "v"), (cluster.options, "t")]
    ) as shared:
        assert [rows(cluster, shared), rows(cluster, shared)] == [5, 5]
        with shared.client(cluster.options, "w") as client:
            client.described("t")
    assert asked == [["t", "u"]]


def test_range_requests_metadata_if_none_is_shared(cluster: FakeCluster) -> None:
    def metadata(broker: int, request: Any) -> Any:
        response = cluster.metadata(request)
        if len(cluster.asked_for(MetadataRequest)) == 1:
            response.brokers = []  # of a broker that has just started
        return response

    cluster.answers[MetadataRequest] = metadata
    with SharedClients([(cluster.options, "t")]) as shared:
        assert [rows(cluster, shared), rows(cluster, shared)] == [5, 5]
    assert len(cluster.asked_for(MetadataRequest)) == 2


def test_recreated_topic_between_ranges_is_refused_by_id(cluster: FakeCluster) -> None:
    def answer(broker: int, request: Any) -> Any:
        is_there = request.topics[0].topic_id == cluster.topic_id
        return fetched(BATCH, end=5) if is_there else fetched(error=UNKNOWN_TOPIC_ID)

    cluster.answers[FetchRequest] = answer
    with SharedClients([(cluster.options, "t")]) as shared:
        assert rows(cluster, shared) == 5
        cluster.topic_id = UUID(int=8)
        with pytest.raises(DataLoss, match="created again"):
            rows(cluster, shared)


def test_and_by_its_description_where_brokers_know_names_only(cluster: FakeCluster) -> None:
    cluster.versions[FetchRequest] = (4, 12)
    with SharedClients([(cluster.options, "t")]) as shared:
        assert [rows(cluster, shared) for _ in range(3)] == [5, 5, 5]
        assert len(cluster.asked_for(MetadataRequest)) == 3, "all but the first ask again: what is known is older"
        assert len(cluster.asked_for(FetchRequest)) == 4, "the second finds out that brokers know names only"
        cluster.topic_id = UUID(int=8)
        with pytest.raises(DataLoss, match="created again"):
            rows(cluster, shared)
    before = len(cluster.asked_for(MetadataRequest))
    cluster.topic_id = TOPIC_ID
    assert rows(cluster) == 5
    assert len(cluster.asked_for(MetadataRequest)) == before + 1, "a client of its own knows nothing older"


def test_a_client_is_lent_to_one_user_at_a_time(cluster: FakeCluster) -> None:
    other_options = cluster.options | {"client.id": "other"}
    with SharedClients([]) as shared:
        with shared.client(cluster.options, "t") as first, shared.client(cluster.options, "t") as second:
            assert first is not second
        with shared.client(cluster.options, "t") as again, shared.client(other_options, "t") as other_client:
            assert again is second  # the one that came back first
            assert other_client.options.client_id == "other"


def test_a_client_whose_user_failed_is_not_lent_again(cluster: FakeCluster) -> None:
    with SharedClients([]) as shared:
        with pytest.raises(ValueError, match="broken"), shared.client(cluster.options, "t") as failed:
            raise ValueError("broken")
        with shared.client(cluster.options, "t") as next_one:
            assert next_one is not failed


def test_where_no_broker_answers_the_range_says_so(cluster: FakeCluster) -> None:
    options = cluster.options | {"bootstrap.servers": "127.0.0.1:1"}
    source = KafkaSource(options=options, topic="t", topic_id=TOPIC_ID)
    with SharedClients([(options, "t")]) as shared, pytest.raises(BrokerUnavailable):
        next(source.batches(PLANNED, shared))


def test_the_end_of_the_block_closes_its_clients(cluster: FakeCluster) -> None:
    with SharedClients([]) as shared, shared.client(cluster.options, "t") as client:
        assert client.topics() == ("t",)
    with pytest.raises(RuntimeError, match="closed"):
        client.topics()


def test_all_are_closed_though_one_of_them_fails_to(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[BrokerClient] = []
    close = BrokerClient.close

    def fails_first(client: BrokerClient) -> None:
        closed.append(client)
        close(client)
        if len(closed) == 1:
            raise OSError("the socket is gone")

    monkeypatch.setattr(BrokerClient, "close", fails_first)
    other_options = cluster.options | {"client.id": "other"}
    with (
        pytest.raises(OSError, match="is gone"),
        SharedClients([]) as shared,
        shared.client(cluster.options, "t") as first,
        shared.client(other_options, "t") as second,
    ):
        pass
    assert set(closed) == {first, second}
