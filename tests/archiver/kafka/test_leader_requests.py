"""Requests about many topics at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from archiver.errors import UnknownTopic
from archiver.kafka import leader_requests
from archiver.kafka.broker import BrokerClient, EpochEnd
from archiver.topics.log_bounds import LogBounds
from catalog.model import PartitionOffset
from tests.support.kafka.fake_brokers import FakeCluster, fake_cluster

NO_SUCH_TOPIC, FENCED, NO_LEADER = 3, 74, -1
TOPICS = {f"t{number}": 2 for number in range(5)}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        running.answers[MetadataRequest] = lambda _, request: metadata(running, request, {})
        running.answers[ListOffsetsRequest] = lambda _, request: offsets(request, {})
        running.answers[OffsetForLeaderEpochRequest] = lambda _, request: epoch_ends(request)
        yield running


def metadata(cluster: FakeCluster, request: Any, leaders: dict[tuple[str, int], int]) -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    partitions = {
        name: [
            topic.MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=leaders.get((name, number), number % 2),
                leader_epoch=3,
                replica_nodes=[],
                isr_nodes=[],
                offline_replicas=[],
            )
            for number in range(count)
        ]
        for name, count in TOPICS.items()
    }
    answer = FakeCluster.metadata(cluster, request)
    answer.topics = [
        topic(
            error_code=0 if asked.name in partitions else NO_SUCH_TOPIC,
            name=asked.name,
            topic_id=cluster.topic_id,
            is_internal=False,
            partitions=partitions.get(asked.name, []),
        )
        for asked in request.topics or []
    ]
    return answer


def offset(topic: str, partition: int, timestamp: int) -> int:
    return 100 * int(topic[1:]) + partition + (50 if timestamp == -1 else 0)


def offsets(request: Any, errors: dict[tuple[str, int], int]) -> Any:
    about = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = [
        about(
            name=topic.name,
            partitions=[
                about.ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index,
                    error_code=errors.get((topic.name, partition.partition_index), 0),
                    timestamp=-1,
                    offset=offset(topic.name, partition.partition_index, partition.timestamp),
                    leader_epoch=3,
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def epoch_ends(request: Any) -> Any:
    about = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = [
        about(
            topic=topic.topic,
            partitions=[
                about.EpochEndOffset(
                    error_code=0, partition=partition.partition, leader_epoch=partition.leader_epoch, end_offset=7
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


ALL = {name: range(count) for name, count in TOPICS.items()}


def test_one_request_a_broker_asks_about_all_topics(cluster: FakeCluster) -> None:
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(ALL)
        result = brokers.list_offsets_at_once(ALL, "earliest")
        assert result == {name: {partition: offset(name, partition, -2) for partition in range(2)} for name in TOPICS}
        assert result == {name: brokers.list_offsets(name, ALL[name], "earliest") for name in TOPICS}
    assert cluster.asked_for(ListOffsetsRequest)[:2] == [0, 1]
    assert len(cluster.asked_for(ListOffsetsRequest)) == 2 + 2 * len(TOPICS)
    assert len(cluster.asked_for(MetadataRequest)) == 1, "one about all topics"


def test_the_bounds_of_many_topics_are_those_of_each(cluster: FakeCluster) -> None:
    committed = {name: {0: PartitionOffset(next_offset=9, leader_epoch=2)} for name in TOPICS} | {"t3": {}}
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(ALL)
        bounds = LogBounds.ask_at_once(
            {name: sorted(partitions) for name, partitions in ALL.items()}, committed, brokers
        )
        assert bounds == {name: LogBounds.ask(name, sorted(ALL[name]), committed[name], brokers) for name in TOPICS}
    assert bounds["t1"].epoch_ends == {0: EpochEnd(leader_epoch=2, end_offset=7)}
    assert bounds["t3"].epoch_ends == {}


def test_requests_are_of_a_bounded_size(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_requests, "PARTITIONS_AT_ONCE", 2)
    asked = defaultdict[int, list[int]](list)

    def answer(broker: int, request: Any) -> Any:
        asked[broker].append(sum(len(topic.partitions) for topic in request.topics))
        return offsets(request, {})

    cluster.answers[ListOffsetsRequest] = answer
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(ALL)
        assert brokers.list_offsets_at_once(ALL, "latest_stable").keys() == TOPICS.keys()
    assert asked == {0: [2, 2, 1], 1: [2, 2, 1]}


def test_topic_refused_by_a_leader_is_requested_alone(cluster: FakeCluster) -> None:
    errors = {("t2", 1): FENCED}
    cluster.answers[ListOffsetsRequest] = lambda _, request: offsets(request, errors)
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(ALL)
        assert brokers.list_offsets_at_once(ALL, "earliest").keys() == TOPICS.keys() - {"t2"}
        errors.clear()
        assert brokers.list_offsets("t2", range(2), "earliest") == {0: 200, 1: 201}
    assert len(cluster.asked_for(MetadataRequest)) == 2, "who leads it now is asked again, of no other topic"


def test_topics_without_a_leader_or_unknown_are_left_out(cluster: FakeCluster) -> None:
    cluster.answers[MetadataRequest] = lambda _, request: metadata(cluster, request, {("t4", 1): NO_LEADER})
    asked = {**ALL, "gone": range(1)}
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(asked)
        assert brokers.list_offsets_at_once(asked, "earliest").keys() == TOPICS.keys() - {"t4"}
        with pytest.raises(UnknownTopic, match="gone"):
            brokers.described("gone")


@pytest.mark.parametrize("hangs", [True, False])
def test_a_broker_that_does_not_answer_leaves_out_what_it_leads(cluster: FakeCluster, *, hangs: bool) -> None:
    moved = {(name, 1): 0 for name in TOPICS if name != "t0"}
    cluster.answers[MetadataRequest] = lambda _, request: metadata(cluster, request, moved)
    cluster.answers[ListOffsetsRequest] = lambda broker, request: (
        offsets(request, {}) if broker == 0 else cluster.stop.wait(5) if hangs else None
    )
    with BrokerClient(cluster.options) as brokers:
        brokers.refresh(ALL)
        assert brokers.list_offsets_at_once(ALL, "earliest").keys() == TOPICS.keys() - {"t0"}


def test_nothing_is_asked_of_nobody(cluster: FakeCluster) -> None:
    with BrokerClient(cluster.options) as brokers:
        assert brokers.list_offsets_at_once({}, "earliest") == {}
        assert LogBounds.ask_at_once({}, {}, brokers) == {}
    assert cluster.asked == []
