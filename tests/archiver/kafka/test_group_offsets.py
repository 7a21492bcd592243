"""Committed offsets of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.metadata import FindCoordinatorRequest

from archiver.errors import AccessDenied, SourceError
from archiver.kafka.broker import BrokerClient
from archiver.kafka.group_offsets import CommittedOffset, committed_offsets
from tests.support.kafka.fake_brokers import FakeCluster, coordinator, fake_cluster

NOT_AVAILABLE, NOT_COORDINATOR, TOPIC_DENIED, GROUP_DENIED, UNSTABLE, TOO_LARGE = 15, 16, 29, 30, 88, 10


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        running.answers[FindCoordinatorRequest] = lambda _, __: coordinator(1)
        yield running


def answer(offsets: dict[int, int], *, error: int = 0, errors: dict[int, int] | None = None) -> Any:
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partitions = [
        topic.OffsetFetchResponsePartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            metadata="m" if partition else None,
            error_code=(errors or {}).get(partition, 0),
        )
        for partition, offset in offsets.items()
    ]
    return OffsetFetchResponse(
        throttle_time_ms=0, topics=[topic(name="t", partitions=partitions)] if partitions else [], error_code=error
    )


def asked(cluster: FakeCluster, *answers: Any) -> dict[int, CommittedOffset]:
    left = [*answers]
    cluster.answers[OffsetFetchRequest] = lambda _, __: left.pop(0) if len(left) > 1 else left[0]
    with BrokerClient(cluster.options) as brokers:
        brokers.cluster_id()
        return committed_offsets(brokers, "g", "t", (0, 1, 2))


def test_coordinator_omits_partitions_without_an_offset(cluster: FakeCluster) -> None:
    committed = asked(cluster, answer({0: 7, 1: 0, 2: -1}))
    assert committed == {0: CommittedOffset(offset=7), 1: CommittedOffset(offset=0, metadata="m")}
    assert cluster.asked_for(OffsetFetchRequest) == [1]


@pytest.mark.parametrize("code", [NOT_COORDINATOR, NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_again(cluster: FakeCluster, code: int) -> None:
    places = [0, 1]
    cluster.answers[FindCoordinatorRequest] = lambda _, __: coordinator(places.pop(0))
    assert asked(cluster, answer({}, error=code), answer({0: 7, 1: 8, 2: 9})).keys() == {0, 1, 2}
    assert cluster.asked_for(OffsetFetchRequest) == [0, 1]


def test_a_coordinator_that_is_being_elected_is_waited_for(cluster: FakeCluster) -> None:
    answers = [coordinator(-1, error=NOT_AVAILABLE), coordinator(0)]
    cluster.answers[FindCoordinatorRequest] = lambda _, __: answers.pop(0)
    assert asked(cluster, answer({0: 7, 1: 8, 2: 9})).keys() == {0, 1, 2}


def test_offsets_of_an_open_transaction_are_waited_for(cluster: FakeCluster) -> None:
    waiting = answer({0: -1, 1: 8, 2: 9}, errors={0: UNSTABLE})
    assert asked(cluster, waiting, answer({0: 7, 1: 8, 2: 9}))[0].offset == 7


def test_answer_lacking_a_partition_is_requested_again(cluster: FakeCluster) -> None:
    assert asked(cluster, answer({0: 7}), answer({0: 7, 1: 8, 2: 9})).keys() == {0, 1, 2}


def test_an_error_of_one_partition_is_raised(cluster: FakeCluster) -> None:
    with pytest.raises(AccessDenied, match=r"partition 1\. Give the principal DESCRIBE on the group") as denied:
        asked(cluster, answer({0: 7, 1: -1, 2: 9}, errors={1: TOPIC_DENIED}))
    assert denied.value.context["group"] == "g"
    with pytest.raises(SourceError, match="partition 2"):
        asked(cluster, answer({0: 7, 1: 8, 2: -1}, errors={2: TOO_LARGE}))


def test_a_group_that_may_not_be_read_is_told(cluster: FakeCluster) -> None:
    with pytest.raises(AccessDenied, match="DESCRIBE on the group"):
        asked(cluster, answer({}, error=GROUP_DENIED))
