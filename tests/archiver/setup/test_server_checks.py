"""`archiver check` of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest

from archiver.setup.findings import CheckOutcome, Finding
from archiver.setup.server_checks import look_at_kafka
from tests.support.kafka.fake_brokers import FakeCluster, fake_cluster, fetched, listed
from tests.support.kafka.record_batches import Record, build

BATCH = build([Record()] * 5)


def epoch_end(epoch: int, end: int) -> Any:
    topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    partition = topic.EpochEndOffset(error_code=0, partition=0, leader_epoch=epoch, end_offset=end)
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=[topic(topic="t", partitions=[partition])])


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        for kind in (DescribeConfigsRequest, DescribeLogDirsRequest, DescribeProducersRequest):
            running.versions[kind] = (0, 1)
        running.answers[FetchRequest] = lambda *_: fetched(BATCH, end=5)
        running.answers[ListOffsetsRequest] = lambda _, request: listed(
            0 if request.topics[0].partitions[0].timestamp == -2 else 5
        )
        running.answers[OffsetForLeaderEpochRequest] = lambda *_: epoch_end(3, 5)
        yield running


def findings(cluster: FakeCluster) -> list[Finding]:
    topics = (SimpleNamespace(name="t"),)
    config: Any = SimpleNamespace(
        kafka=cluster.options, has_kafka=True, sections=("t",), select_kafka=lambda *_, **__: topics
    )
    return list(look_at_kafka(config))


def test_brokers_that_have_everything(cluster: FakeCluster) -> None:
    assert [finding.outcome for finding in findings(cluster)] == [CheckOutcome.OK, CheckOutcome.OK]


def test_requests_that_the_brokers_lack(cluster: FakeCluster) -> None:
    for kind in (DescribeLogDirsRequest, DescribeProducersRequest, OffsetForLeaderEpochRequest):
        del cluster.versions[kind]
    warnings = [finding for finding in findings(cluster) if finding.outcome is CheckOutcome.WARNING]
    assert [warning.subject for warning in warnings] == [
        "OffsetForLeaderEpoch",
        "DescribeLogDirs",
        "DescribeProducers",
    ]
    assert "each run compares the newest archived records" in warnings[0].detail


def test_epochs_that_prove_nothing(cluster: FakeCluster) -> None:
    cluster.answers[OffsetForLeaderEpochRequest] = lambda *_: epoch_end(0, 0)
    (*_, last) = findings(cluster)
    assert (last.subject, last.outcome) == ("topic t", CheckOutcome.WARNING)
    assert last.detail.startswith("the brokers' answers about leader epochs of topic t prove nothing")


def test_brokers_that_hang_up_at_newer_versions(cluster: FakeCluster) -> None:
    cluster.answers[ApiVersionsRequest] = lambda _, request: (
        cluster.api_versions() if request.API_VERSION <= 0 else None
    )
    assert [finding.outcome for finding in findings(cluster)] == [CheckOutcome.OK, CheckOutcome.OK]


def test_leaders_without_epochs(cluster: FakeCluster) -> None:
    cluster.epoch = -1
    cluster.answers[FetchRequest] = lambda *_: fetched(build([Record()] * 5, leader_epoch=-1), end=5)
    (*_, last) = findings(cluster)
    assert (last.subject, last.outcome) == ("topic t", CheckOutcome.WARNING)
    assert "or there are none: each run compares the newest archived records" in last.detail


def test_a_corrupt_batch(cluster: FakeCluster) -> None:
    cluster.answers[FetchRequest] = lambda *_: fetched(BATCH[:-1] + b"!", end=5)
    (*_, last) = findings(cluster)
    assert last.failed
    assert last.error is not None
    assert "the batch is corrupt, in three fetches, one of them on a new connection" in str(last.error)


@pytest.mark.parametrize(("end", "outcome"), [(5, CheckOutcome.OK), (0, CheckOutcome.WARNING)])
def test_the_newest_batch_names_the_epoch(cluster: FakeCluster, end: int, outcome: CheckOutcome) -> None:
    """Metadata before version 9 doesn't, but the archiver compares by the epochs of batches."""
    cluster.epoch = -1
    cluster.answers[FetchRequest] = lambda *_: fetched(build([Record()] * 5, leader_epoch=2), end=5)
    cluster.answers[OffsetForLeaderEpochRequest] = lambda *_: epoch_end(2, end)
    assert findings(cluster)[-1].outcome is outcome


def test_topics_without_ids_are_named_once(cluster: FakeCluster) -> None:
    cluster.topic_id = UUID(int=0)
    (warning,) = (finding for finding in findings(cluster) if finding.outcome is CheckOutcome.WARNING)
    assert (warning.subject, "may have the same epochs" in warning.detail) == ("topic ids", True)
