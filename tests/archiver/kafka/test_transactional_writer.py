"""Transactions while the coordinator moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from archiver.errors import AccessDenied
from archiver.kafka.broker import BrokerClient
from archiver.kafka.transactional_writer import ProducerBatch, ProducerIdentity, TransactionalWriter
from tests.support.kafka.fake_brokers import FakeCluster, coordinator, fake_cluster

LOADING, NOT_COORDINATOR, TOPIC_DENIED, CONCURRENT, NOT_ATTEMPTED = 14, 16, 29, 51, 55


@dataclass(slots=True)
class OneRecord:
    rows: int = 1

    def encode(self, identity: ProducerIdentity) -> bytes:
        return b"batch of %d" % identity.producer_id


BATCHES: dict[int, ProducerBatch] = {0: OneRecord()}


def added(*codes: int) -> Any:
    topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    results = [
        topic.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        for number, code in enumerate(codes)
    ]
    return AddPartitionsToTxnResponse(
        throttle_time_ms=0, results_by_topic_v3_and_below=[topic(name="t", results_by_partition=results)]
    )


def produced(*bases: int) -> Any:
    topic = ProduceResponse.TopicProduceResponse
    partitions = [
        topic.PartitionProduceResponse(
            index=number,
            error_code=0,
            base_offset=base,
            log_append_time_ms=-1,
            log_start_offset=0,
            record_errors=[],
            error_message=None,
        )
        for number, base in enumerate(bases)
    ]
    return ProduceResponse(throttle_time_ms=0, responses=[topic(name="t", partition_responses=partitions)])


def in_turn(*answers: Any) -> Callable[[int, Any], Any]:
    left = [*answers]
    return lambda _, __: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Broker 0 coordinates until it must add partitions, then broker 1 does."""
    with fake_cluster() as running:
        opened = InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=0)
        running.answers[FindCoordinatorRequest] = lambda _, __: coordinator(
            1 if running.asked_for(AddPartitionsToTxnRequest) else 0
        )
        running.answers[InitProducerIdRequest] = in_turn(opened)
        running.answers[AddPartitionsToTxnRequest] = in_turn(added(0))
        running.answers[ProduceRequest] = in_turn(produced(40))
        running.answers[EndTxnRequest] = in_turn(EndTxnResponse(throttle_time_ms=0, error_code=0))
        yield running


def written(cluster: FakeCluster) -> dict[int, int]:
    with BrokerClient(cluster.options) as brokers:
        brokers.cluster_id()
        writer = TransactionalWriter(brokers, "x")
        writer.open()
        result = writer.write("t", BATCHES)
        writer.commit()
        return result


@pytest.mark.parametrize("code", [NOT_COORDINATOR, LOADING])
def test_moved_coordinator_is_found_while_adding_partitions(cluster: FakeCluster, code: int) -> None:
    cluster.answers[AddPartitionsToTxnRequest] = in_turn(added(code), added(0))
    assert written(cluster) == {0: 40}
    assert cluster.asked_for(AddPartitionsToTxnRequest) == [0, 1]
    assert cluster.asked_for(EndTxnRequest) == [1]


def test_ending_transaction_is_awaited_at_its_coordinator(cluster: FakeCluster) -> None:
    cluster.answers[AddPartitionsToTxnRequest] = in_turn(added(CONCURRENT), added(0))
    assert written(cluster) == {0: 40}
    assert cluster.asked_for(AddPartitionsToTxnRequest) == [0, 0]


def test_the_error_that_stopped_all_partitions_is_told(cluster: FakeCluster) -> None:
    cluster.answers[AddPartitionsToTxnRequest] = in_turn(added(NOT_ATTEMPTED, TOPIC_DENIED))
    with pytest.raises(AccessDenied, match="WRITE on the topics"):
        written(cluster)


@pytest.mark.parametrize("has_topic", [True, False])
def test_a_partition_that_the_answer_leaves_out_is_not_written(cluster: FakeCluster, has_topic: bool) -> None:
    silent = produced()
    silent.responses = silent.responses if has_topic else []
    cluster.answers[ProduceRequest] = in_turn(silent, produced(41))
    assert written(cluster) == {0: 41}
    assert len(cluster.asked_for(ProduceRequest)) == 2
