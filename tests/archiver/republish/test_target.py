"""The target topic stays the checked one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from archiver.errors import TargetReplaced
from archiver.kafka.broker import BrokerClient
from archiver.republish.target import Target, check_same
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


def target(topic_id: str) -> Target:
    return Target(name="t", id=topic_id, partitions=1, most_batch_bytes=1000, notes=())


def test_a_target_that_was_made_again_is_told(cluster: FakeCluster) -> None:
    with BrokerClient(cluster.options) as brokers:
        check_same(brokers, target(str(TOPIC_ID)))
        cluster.topic_id = uuid.UUID(int=8)
        with pytest.raises(TargetReplaced, match="another --transfer") as replaced:
            check_same(brokers, target(str(TOPIC_ID)))
    assert replaced.value.context["begun_with"] == str(TOPIC_ID)


def test_a_cluster_that_gives_topics_no_ids_is_believed(cluster: FakeCluster) -> None:
    cluster.topic_id = uuid.UUID(int=0)
    with BrokerClient(cluster.options) as brokers:
        check_same(brokers, target(""))
