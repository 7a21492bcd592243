"""Requests with leader epochs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataRequest

from archiver.errors import LogTruncated
from archiver.kafka import BrokerClient, EpochEnd, PartitionFetcher
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster, fetched, listed
from tests.support.kafka.record_batches import Record, build, offsets

OUT_OF_RANGE, FENCED, UNKNOWN_EPOCH = 1, 74, 75
BEGAN = ((0, 0), (3, 10), (7, 10), (9, 40))
END = 50


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


def epoch_end(epoch: int, end: int, *, error: int = 0) -> Any:
    topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    partition = topic.EpochEndOffset(error_code=error, partition=0, leader_epoch=epoch, end_offset=end)
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=[topic(topic="t", partitions=[partition])])


def answered(request: Any) -> Any:
    leader_epoch = request.topics[0].partitions[0].leader_epoch
    later = [start for epoch, start in BEGAN if epoch > leader_epoch]
    return epoch_end(max(epoch for epoch, _ in BEGAN if epoch <= leader_epoch), later[0] if later else END)


def diverging(epoch: int, end: int) -> Any:
    answer = fetched(end=END)
    (partition,) = answer.responses[0].partitions
    partition.diverging_epoch = FetchResponse.FetchableTopicResponse.PartitionData.EpochEndOffset(
        epoch=epoch, end_offset=end
    )
    return answer


def test_each_fetch_names_the_epoch_of_what_was_read_before(cluster: FakeCluster) -> None:
    log = {at: build([Record()] * 3, base_offset=at, leader_epoch=at // 5) for at in range(0, 30, 3)}
    asked: list[tuple[int, int]] = []

    def answer(_: int, request: Any) -> Any:
        (partition,) = request.topics[0].partitions
        asked.append((partition.fetch_offset, partition.last_fetched_epoch))
        return fetched(log[partition.fetch_offset], end=30)

    cluster.answers[FetchRequest] = answer
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        pieces = list(fetcher.batches(6, 21, last_epoch=0))
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(6, 21))
    assert asked == [(6, 0), (9, 1), (12, 1), (15, 2), (18, 3)]


def test_a_log_that_was_cut_back_between_two_fetches(cluster: FakeCluster) -> None:
    first = build([Record()] * 3, base_offset=0, leader_epoch=4)
    cluster.answers[FetchRequest] = lambda _, request: (
        fetched(first, end=9) if request.topics[0].partitions[0].fetch_offset == 0 else diverging(3, 2)
    )
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        pieces = fetcher.batches(0, 9)
        assert offsets(next(pieces)) == [0, 1, 2]
        with pytest.raises(LogTruncated, match=r"leader_epoch=4.*\[2, 3\)") as caught:
            next(pieces)
    assert caught.value.retryable, "the next look says what that means"


def test_a_leader_without_a_history_is_read_without_it(cluster: FakeCluster) -> None:
    batch = build([Record()], base_offset=5, leader_epoch=4)
    cluster.answers[FetchRequest] = lambda _, request: (
        fetched(error=OUT_OF_RANGE)
        if request.topics[0].partitions[0].last_fetched_epoch >= 0
        else fetched(batch, end=9)
    )
    cluster.answers[ListOffsetsRequest] = lambda _, request: listed(
        0 if request.topics[0].partitions[0].timestamp == -2 else 9
    )
    cluster.answers[OffsetForLeaderEpochRequest] = lambda *_: epoch_end(-1, -1)
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        assert fetcher.fetch(5, last_epoch=4).data == batch


@pytest.mark.parametrize("error", [FENCED, UNKNOWN_EPOCH])
def test_requests_name_the_epoch_and_leave_deposed_leaders(cluster: FakeCluster, error: int) -> None:
    asked: list[tuple[int, int]] = []

    def answer(broker: int, request: Any) -> Any:
        (partition,) = request.topics[0].partitions
        asked.append((broker, partition.current_leader_epoch))
        is_offset = isinstance(request, ListOffsetsRequest)
        if broker == 0:
            cluster.leader, cluster.epoch = 1, 4
            return listed(-1, error=error) if is_offset else epoch_end(-1, -1, error=error)
        return listed(50) if is_offset else epoch_end(2, 40)

    cluster.answers[ListOffsetsRequest] = cluster.answers[OffsetForLeaderEpochRequest] = answer
    for question in ("offset", "epoch"):
        cluster.leader, cluster.epoch = 0, 3
        asked.clear()
        with BrokerClient(cluster.options) as client:
            if question == "offset":
                assert client.list_offsets("t", [0], "earliest") == {0: 50}
            else:
                assert client.end_of_epoch("t", {0: 2}) == {0: EpochEnd(leader_epoch=2, end_offset=40)}
        assert asked == [(0, 3), (1, 4)]


def test_a_broker_that_describes_the_past_is_not_believed(cluster: FakeCluster) -> None:
    with BrokerClient(cluster.options) as client:
        assert client.describe(["t"])["t"].partitions[0].leader_epoch == 3
        cluster.leader, cluster.epoch = 1, 2
        described = client.describe(["t"])["t"].partitions[0]
        assert (described.leader, described.leader_epoch) == (0, 3)
        cluster.epoch = 4
        described = client.describe(["t"])["t"].partitions[0]
        assert (described.leader, described.leader_epoch) == (1, 4)
    assert len(cluster.asked_for(MetadataRequest)) >= 3


@pytest.mark.parametrize(
    ("offset", "since", "expected"),
    [(5, 0, (0, 10)), (10, 0, (0, 10)), (11, 0, (7, 40)), (40, 3, (7, 40)), (41, 0, (9, 50)), (51, 0, None)],
)
def test_the_epoch_of_an_offset_is_found(
    cluster: FakeCluster, offset: int, since: int, expected: tuple[int, int] | None
) -> None:
    cluster.epoch = 12
    cluster.answers[OffsetForLeaderEpochRequest] = lambda _, request: answered(request)
    with BrokerClient(cluster.options) as client:
        started = time.monotonic()
        answer = client.epoch_before("t", 0, offset, since=since)
    assert (answer and (answer.leader_epoch, answer.end_offset)) == expected
    assert time.monotonic() - started < 5


def test_a_broker_without_requests_about_epochs(cluster: FakeCluster) -> None:
    """Services without API 23: epochs stay unknown, and no error is raised."""
    del cluster.versions[OffsetForLeaderEpochRequest]
    with BrokerClient(cluster.options) as client:
        assert client.end_of_epoch_at_once({"t": {0: 2}}) == {}, "the caller requests the topic alone"
        assert client.end_of_epoch("t", {0: 2}) == {}
        assert client.lacks_epochs
        assert client.end_of_epoch_at_once({"t": {0: 2}}) == {"t": {}}
        assert client.epoch_before("t", 0, 10, since=0) is None
        assert client.current_epoch("t", 0) == 3
        assert client.is_compacted("t") is None
    assert not cluster.asked_for(OffsetForLeaderEpochRequest)
