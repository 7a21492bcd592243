"""Unreadable offsets pass only with consent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest

from archiver.errors import BrokerUnavailable, CorruptBatch, LeaderSilent
from archiver.ingest.plan.ranges import plan_topic
from archiver.ingest.topic.unreadable_offsets import UnreadableOffsets
from archiver.kafka import BrokerClient
from archiver.topics.seen_partition import SeenPartition
from catalog.model import PartitionOffset
from catalog.offset_range import OffsetRange
from schema_mapping.errors import ContextError
from tests.support.kafka.fake_brokers import TOPIC_ID, FakeCluster, fake_cluster, fetched
from tests.support.kafka.record_batches import Record, build

GOOD = [build([Record()] * 5, base_offset=base) for base in (0, 5, 10)]
BAD = GOOD[1][:-1] + b"!"
SEEN = SeenPartition(
    partition=0, log_start=0, last_stable=15, known=PartitionOffset(next_offset=5, leader_epoch=3), last_epoch=3
)
CORRUPT = CorruptBatch("A batch does not match its checksum")
UNREADABLE = OffsetRange(0, 5, 9)
Spans = dict[int, OffsetRange]
Refused = dict[int, ContextError]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with fake_cluster() as running:
        yield running


def serve(cluster: FakeCluster, middle: bytes, *, at_replica: bytes | None = None) -> None:
    cluster.replicas = [0] if at_replica is None else [0, 1]
    batches = {0: GOOD[0] + middle + GOOD[2], 10: GOOD[2]}

    def answer(broker: int, request: Any) -> Any:
        offset = request.topics[0].partitions[0].fetch_offset
        if broker == 1:
            return fetched(at_replica or b"", end=15)
        return fetched(batches.get(offset, (middle or b"") + GOOD[2] if middle else b""), end=15)

    cluster.answers[FetchRequest] = answer


def spans(cluster: FakeCluster, error: ContextError | None, *, accepts: bool = True) -> tuple[Spans, Refused]:
    with BrokerClient(cluster.options) as client:
        offsets = UnreadableOffsets("t", TOPIC_ID, client, accepts=accepts)
        offsets.note(0, error)
        first = offsets.spans([SEEN])
        assert offsets.spans([SEEN]) == ({}, {}), "each task's error counts once"
        return first


@pytest.mark.parametrize(("middle", "error"), [(BAD, CORRUPT), (b"", LeaderSilent("nothing"))])
def test_a_span_ends_at_the_next_sound_batch(cluster: FakeCluster, middle: bytes, error: ContextError) -> None:
    serve(cluster, middle)
    assert spans(cluster, error) == ({0: UNREADABLE}, {})


def test_what_can_be_read_is_no_loss(cluster: FakeCluster) -> None:
    serve(cluster, GOOD[1])
    assert spans(cluster, CORRUPT) == ({}, {})


def test_nothing_is_passed_without_consent_or_reason(cluster: FakeCluster) -> None:
    serve(cluster, BAD)
    assert spans(cluster, CORRUPT, accepts=False) == ({}, {})
    assert spans(cluster, BrokerUnavailable("away")) == ({}, {})
    assert spans(cluster, None) == ({}, {})


def test_a_replica_with_the_records_stops_the_partition(cluster: FakeCluster) -> None:
    serve(cluster, BAD, at_replica=GOOD[1])
    lost, refused = spans(cluster, CORRUPT)
    assert lost == {}
    assert "Another replica has the records" in str(refused[0])
    serve(cluster, BAD, at_replica=BAD)
    assert spans(cluster, CORRUPT) == ({0: UNREADABLE}, {})
    cluster.hanging.add(1)
    lost, refused = spans(cluster, CORRUPT)
    assert lost == {}
    assert isinstance(refused[0], LeaderSilent), "its copy may be readable"


def test_a_plan_continues_after_the_span() -> None:
    plan = plan_topic("t", [SEEN], unreadable={0: UNREADABLE})
    (planned,) = plan.ranges
    assert (plan.lost, plan.failed) == ((UNREADABLE,), {})
    assert (planned.start_offset, planned.end_offset, planned.owns_head) == (10, 15, True)
    assert (planned.epochs.archived, planned.epochs.at_leader) == (3, -1)
    assert plan_topic("t", [SEEN]).lost == ()
