"""Brokers that hang up at unknown ApiVersions.

Azure Event Hubs does: dpkp/kafka-python#2602.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from archiver.errors import BrokerUnavailable
from archiver.kafka import BrokerClient
from tests.support.kafka.fake_brokers import FakeCluster, fake_cluster, listed


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        running.answers[ListOffsetsRequest] = lambda *_: listed(7)
        yield running


def hang_up_above(cluster: FakeCluster, newest: int) -> list[int]:
    versions: list[int] = []

    def answer(_: int, request: Any) -> Any:
        versions.append(request.API_VERSION)
        return cluster.api_versions() if newest >= request.API_VERSION else None

    cluster.answers[ApiVersionsRequest] = answer
    return versions


@pytest.mark.parametrize(("newest", "tried"), [(4, [4]), (3, [4, 3]), (2, [4, 3, 0]), (0, [4, 3, 0])])
def test_older_versions_are_tried_on_new_connections(cluster: FakeCluster, newest: int, tried: list[int]) -> None:
    versions = hang_up_above(cluster, newest)
    with BrokerClient(cluster.options) as client:
        assert client.list_offsets("t", [0], "earliest") == {0: 7}
        cluster.leader = 1
        client.refresh(["t"])
        assert client.list_offsets("t", [0], "earliest") == {0: 7}
    assert versions[: len(tried)] == tried
    assert set(versions[len(tried) :]) <= {min(newest, 3), tried[-1]}, "the version that was answered is remembered"


def test_a_broker_that_always_hangs_up_is_named(cluster: FakeCluster) -> None:
    versions = hang_up_above(cluster, -1)
    with BrokerClient(cluster.options) as client, pytest.raises(BrokerUnavailable, match="No broker answers"):
        client.cluster_id()
    assert versions[:3] == [4, 3, 0]
    cluster.answers.pop(ApiVersionsRequest)
    with BrokerClient(cluster.options) as client:
        assert client.cluster_id() == "fake"


def test_a_broker_that_restarts_gets_the_newest_version_again(cluster: FakeCluster) -> None:
    hang_up_above(cluster, -1)
    with BrokerClient(cluster.options) as client:
        with pytest.raises(BrokerUnavailable):
            client.cluster_id()
        # The request of an earlier attempt may arrive late: what counts is the version that is answered.
        cluster.answers[ApiVersionsRequest] = lambda _, request: (
            cluster.api_versions() if request.API_VERSION == 4 else None
        )
        assert client.cluster_id() == "fake"
