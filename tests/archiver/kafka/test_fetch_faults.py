"""Fetches from moving, silent or lying leaders."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from archiver.errors import (
    AccessDenied,
    BrokerUnavailable,
    ConfigError,
    CorruptBatch,
    DataLoss,
    LeaderUnavailable,
    SourceError,
    UnknownTopic,
)
from archiver.kafka import BrokerClient, PartitionFetcher
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster, fetched, listed
from tests.support.kafka.record_batches import Record, build, offsets

NOT_LEADER, TOPIC_DENIED, OUT_OF_RANGE, UNKNOWN_TOPIC, UNKNOWN_SERVER, CORRUPT = 6, 29, 1, 3, -1, 2
LEADER_NOT_AVAILABLE, FENCED_EPOCH, UNKNOWN_TOPIC_ID = 5, 74, 100
BATCH = build([Record()] * 5)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as made:
        yield made


def fetch(cluster: FakeCluster, offset: int = 0, topic_id: uuid.UUID | None = TOPIC_ID, **more: str) -> bytes:
    with PartitionFetcher(cluster.options | more, "t", topic_id, 0) as fetcher:
        return fetcher.fetch(offset).data


def in_turn(*answers: Any) -> Any:
    left = chain(answers, repeat(answers[-1]))
    return lambda broker, request: next(left)


def test_the_leader_is_asked(cluster: FakeCluster) -> None:
    cluster.leader = 1
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH))
    assert fetch(cluster) == BATCH
    assert cluster.asked_for(FetchRequest) == [1]


@pytest.mark.parametrize("error", [NOT_LEADER, LEADER_NOT_AVAILABLE, FENCED_EPOCH, UNKNOWN_TOPIC_ID, UNKNOWN_SERVER])
def test_a_leader_that_moved_is_followed(cluster: FakeCluster, error: int) -> None:
    def answer(broker: int, request: Any) -> Any:
        cluster.leader, cluster.epoch = 1, 4
        return fetched(BATCH) if broker == 1 else fetched(error=error)

    cluster.answers[FetchRequest] = answer
    assert fetch(cluster) == BATCH
    assert cluster.asked_for(FetchRequest) == [0, 1]


def test_a_replica_that_the_leader_names_is_asked(cluster: FakeCluster) -> None:
    """The replica gives records only. The leader has the end of the log."""

    def answer(broker: int, request: Any) -> Any:
        return fetched(BATCH, end=2) if broker == 1 else fetched(end=5, replica=1)

    cluster.answers[FetchRequest] = answer
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        result = fetcher.fetch(0)
    assert (result.data, result.high_watermark, result.last_stable_offset) == (BATCH, 5, 5)
    assert cluster.asked_for(FetchRequest) == [0, 1]


def test_a_replica_that_lags_is_asked_again_and_loses_nothing(cluster: FakeCluster) -> None:
    answers = in_turn(fetched(error=OUT_OF_RANGE), fetched(BATCH))
    cluster.answers[FetchRequest] = lambda broker, request: answers(broker, request) if broker else fetched(replica=1)
    assert fetch(cluster) == BATCH
    assert cluster.asked_for(FetchRequest) == [0, 1, 0, 1]


@pytest.mark.parametrize("replica", [1, 9])
def test_a_replica_that_gives_nothing_is_named(cluster: FakeCluster, replica: int) -> None:
    cluster.answers[FetchRequest] = lambda broker, request: None if broker else fetched(replica=replica)
    with pytest.raises(SourceError, match=f"broker {replica}, which the leader has its readers ask"):
        fetch(cluster, **{"socket.timeout.ms": "200"})


def test_a_leader_that_hangs_up_is_left_for_the_next(cluster: FakeCluster) -> None:
    def answer(broker: int, request: Any) -> Any:
        cluster.leader = 1
        return fetched(BATCH) if broker == 1 else None

    cluster.answers[FetchRequest] = answer
    assert fetch(cluster) == BATCH


def test_a_leader_that_never_answers(cluster: FakeCluster) -> None:
    def answer(broker: int, request: Any) -> Any:
        cluster.leader = 1
        if broker == 1:
            return fetched(BATCH)
        cluster.stop.wait(5)
        return None

    cluster.answers[FetchRequest] = answer
    assert fetch(cluster, **{"socket.timeout.ms": "300"}) == BATCH


def test_a_leader_that_never_answers_is_named(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = lambda broker, request: cluster.stop.wait(5) and None
    with pytest.raises(BrokerUnavailable, match=f"127.0.0.1:{cluster.ports[0]}"):
        fetch(cluster, **{"socket.timeout.ms": "100"})


def test_one_broker_of_two_is_enough_to_start(cluster: FakeCluster) -> None:
    cluster.hanging.add(0)
    cluster.leader = 1
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH))
    assert fetch(cluster) == BATCH


def test_no_broker_answers(cluster: FakeCluster) -> None:
    cluster.hanging |= {0, 1}
    start = time.monotonic()
    with pytest.raises(BrokerUnavailable) as caught:
        fetch(cluster)
    assert 0.9 < time.monotonic() - start < 3
    assert all(f"127.0.0.1:{port}" in str(caught.value) for port in cluster.ports)
    assert caught.value.retryable


def test_a_partition_without_a_leader(cluster: FakeCluster) -> None:
    cluster.leader = -1
    with BrokerClient(cluster.options) as client:
        assert client.describe(["t"])["t"].partitions[0].leader is None
    with pytest.raises(LeaderUnavailable) as caught:
        fetch(cluster, **{"socket.timeout.ms": "200"})
    assert caught.value.context == {"topic": "t", "partition": 0, "offset": 0}


def test_authorization_errors_stop_at_once_and_name_the_topic(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(error=TOPIC_DENIED))
    with pytest.raises(AccessDenied, match="topic='t'"):
        fetch(cluster)
    assert cluster.asked_for(FetchRequest) == [0]
    cluster.topic_error = TOPIC_DENIED
    with BrokerClient(cluster.options) as client, pytest.raises(AccessDenied, match="topic='t'"):
        client.describe(["t"])


PLAIN = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "archiver",
    "sasl.password": "hunter2",
}


@pytest.mark.parametrize(("handshake", "authenticate"), [(33, 0), (0, 58)])
@pytest.mark.parametrize("last_words", [set(), {SaslHandshakeRequest, SaslAuthenticateRequest}])
def test_credentials_that_are_refused(
    cluster: FakeCluster, handshake: int, authenticate: int, last_words: set[Any]
) -> None:
    cluster.last_words = last_words if handshake else last_words - {SaslHandshakeRequest}
    cluster.answers[SaslHandshakeRequest] = in_turn(SaslHandshakeResponse(error_code=handshake, mechanisms=["PLAIN"]))
    cluster.answers[SaslAuthenticateRequest] = in_turn(
        SaslAuthenticateResponse(error_code=authenticate, error_message="wrong", auth_bytes=b"", session_lifetime_ms=0)
    )
    start = time.monotonic()
    with pytest.raises(AccessDenied, match="credentials") as caught:
        fetch(cluster, **PLAIN)
    assert time.monotonic() - start < 0.5
    assert "hunter2" not in str(caught.value)


def test_a_topic_id_that_changed(cluster: FakeCluster) -> None:
    with pytest.raises(DataLoss, match="created again"):
        fetch(cluster, topic_id=uuid.UUID(int=8))
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH))
    assert fetch(cluster, topic_id=None) == BATCH


def test_a_broker_that_knows_no_topic_ids(cluster: FakeCluster) -> None:
    cluster.versions |= {FetchRequest: (4, 11), MetadataRequest: (0, 9)}
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH))
    with BrokerClient(cluster.options) as client:
        assert client.describe(["t"])["t"].topic_id is None
    assert fetch(cluster) == BATCH


def test_a_topic_that_vanishes(cluster: FakeCluster) -> None:
    cluster.topic_error = UNKNOWN_TOPIC
    with pytest.raises(UnknownTopic):
        fetch(cluster)


def test_offsets_that_are_lost_are_named(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(error=OUT_OF_RANGE))
    cluster.answers[ListOffsetsRequest] = in_turn(listed(90))
    with pytest.raises(DataLoss, match=r"lost='\[40, 90\)'"):
        fetch(cluster, 40)
    cluster.answers[ListOffsetsRequest] = in_turn(listed(0), listed(7))
    with pytest.raises(DataLoss, match="log_end=7"):
        fetch(cluster, 40)


def test_a_new_leader_that_is_behind_is_waited_for(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(error=OUT_OF_RANGE), fetched(BATCH))
    cluster.answers[ListOffsetsRequest] = in_turn(listed(0), listed(50))
    assert fetch(cluster, 40) == BATCH


def test_throttling_is_obeyed(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH, throttle_ms=400))
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        fetcher.fetch(0)
        start = time.monotonic()
        fetcher.fetch(0)
        assert time.monotonic() - start > 0.35


def test_errors_that_time_does_not_heal(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(error=CORRUPT))
    with pytest.raises(CorruptBatch, match="own log is corrupt"):
        fetch(cluster)
    cluster.answers[FetchRequest] = in_turn(fetched(error=42))
    with pytest.raises(SourceError, match="InvalidRequest"):
        fetch(cluster)
    assert cluster.asked_for(FetchRequest) == [0, 0]


def test_an_answer_larger_than_allowed_names_the_option(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = in_turn(fetched(BATCH * 100))
    with pytest.raises(ConfigError, match=r"receive\.message\.max\.bytes"):
        fetch(cluster, **{"receive.message.max.bytes": "3000", "fetch.max.bytes": "100"})


def test_a_broker_with_no_version_in_common(cluster: FakeCluster) -> None:
    cluster.versions[FetchRequest] = (90, 99)
    with pytest.raises(SourceError, match="version"):
        fetch(cluster)


def test_what_is_no_broker_at_all(cluster: FakeCluster) -> None:
    cluster.answers[ApiVersionsRequest] = in_turn(None)
    with pytest.raises(BrokerUnavailable):
        fetch(cluster)


def test_a_range_over_moving_leaders(cluster: FakeCluster) -> None:
    log = [build([Record()] * 3, base_offset=at) for at in range(0, 30, 3)]
    turns = 0

    def answer(broker: int, request: Any) -> Any:
        nonlocal turns
        turns += 1
        if turns % 3 == 0:
            cluster.leader = 1 - broker
            return fetched(error=NOT_LEADER)
        return fetched(log[request.topics[0].partitions[0].fetch_offset // 3], end=30)

    cluster.answers[FetchRequest] = answer
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        assert [offset for piece in fetcher.batches(0, 30) for offset in offsets(piece)] == list(range(30))
    assert {0, 1} == set(cluster.asked_for(FetchRequest))


def test_a_corrupt_batch_is_fetched_three_times(cluster: FakeCluster) -> None:
    bad = bytearray(build([Record()] * 5, base_offset=5))
    bad[-1] ^= 1
    cluster.answers[FetchRequest] = lambda _, request: (
        fetched(BATCH + bytes(bad), end=10)
        if request.topics[0].partitions[0].fetch_offset == 0
        else fetched(bytes(bad), end=10)
    )
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        pieces = fetcher.batches(0, 10)
        assert offsets(next(pieces)) == list(range(5))
        connections = len(cluster.asked_for(ApiVersionsRequest))
        with pytest.raises(CorruptBatch, match="the same in three fetches, one of them on a new connection") as caught:
            next(pieces)
        assert caught.value.context["next_offset"] == 5
        assert len(cluster.asked_for(ApiVersionsRequest)) == connections + 1
    assert len(cluster.asked_for(FetchRequest)) >= 3


def test_a_batch_that_is_right_the_second_time(cluster: FakeCluster) -> None:
    bad = bytearray(BATCH)
    bad[-1] ^= 1
    cluster.answers[FetchRequest] = in_turn(fetched(bytes(bad), end=5), fetched(BATCH, end=5))
    with PartitionFetcher(cluster.options, "t", TOPIC_ID, 0) as fetcher:
        assert [offset for piece in fetcher.batches(0, 5) for offset in offsets(piece)] == list(range(5))
