"""Members with librdkafka, on slow servers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, TopicPartition

from archiver.errors import StorageUnavailable
from archiver.serve.groups import CommittedOffsets
from archiver.serve.nodes import Beats, Members, Node
from catalog.registry import GroupOffset
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import Line, NodesInMemory
from tests.support.servers.served_lake import OffsetsInMemory, ServedLake
from tests.support.timing.eventually import eventually

ORDERS = "orders"
SECONDS = 20.0
ROWS = build([Record(value=b"x")] * 10)


def settled(*nodes: ServedLake) -> None:
    eventually(lambda: all(node.cluster.members.is_settled for node in nodes))
    eventually(lambda: all(len(node.cluster.members.nodes) == len(nodes) for node in nodes))


def moves_with_another(group: str) -> bool:
    nodes = tuple(Node(node_id=node_id, host="127.0.0.1", port=1) for node_id in (1, 2))
    return Members(number=1, nodes=nodes).coordinator(group).node_id == nodes[1].node_id


class AwayForAMoment(OffsetsInMemory):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def load(self, group_id: str) -> CommittedOffsets:
        if self.times:
            self.times -= 1
            raise StorageUnavailable("the registry is away")
        return super().load(group_id)


@contextmanager
def consuming(port: int, **options: Any) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **options,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def first_offset(consumer: Consumer) -> int | None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            return message.offset()
    return None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_member_with_offsets_unreadable_at_first_resumes(tmp_path: Path, protocol: str) -> None:
    offsets = AwayForAMoment(times=3)
    lake = archived(tmp_path / "lake", ROWS, end=10)
    with ServedLake(lake, offsets=offsets) as served:
        topic_id: UUID = served.topics.open[0].topic_id
        offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=4)})
        with consuming(served.port, **{"group.protocol": protocol}) as consumer:
            consumer.subscribe([ORDERS])
            assert first_offset(consumer) == 4
        assert offsets.times == 0


def placed(consumer: Consumer, group: str, served: ServedLake) -> None:
    topic_id = served.topics.open[0].topic_id
    served.offsets.commit(group, {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=4)})
    (position,) = consumer.committed([TopicPartition(ORDERS, 0)], SECONDS)
    assert position.offset == 4


def test_offset_request_moves_on_from_an_isolated_node(tmp_path: Path) -> None:
    """It has no session: only this answer makes it look for another coordinator."""
    lake, store, offsets = archived(tmp_path / "lake", ROWS, end=10), NodesInMemory(), OffsetsInMemory()
    lines, beats = (Line(store), Line(store)), Beats(every=0.05, lost_after=0.5)
    options: dict[str, Any] = {"offsets": offsets, "beats": beats}
    with ServedLake(lake, nodes=lines[0], **options) as first, ServedLake(lake, nodes=lines[1], **options) as second:
        nodes = (first, second)
        settled(*nodes)
        coordinator = first.cluster.members.coordinator("g").node_id - 1
        with consuming(nodes[1 - coordinator].port) as consumer:
            placed(consumer, "g", nodes[coordinator])
            lines[coordinator].is_away = True
            eventually(lambda: not nodes[coordinator].cluster.is_leased)
            consumer.assign([TopicPartition(ORDERS, 0)])
            assert first_offset(consumer) == 4


def test_offset_request_moves_on_from_a_past_coordinator(tmp_path: Path) -> None:
    lake = archived(tmp_path / "lake", ROWS, end=10)
    shared: dict[str, Any] = {"nodes": NodesInMemory(), "offsets": OffsetsInMemory()}
    group = next(group_id for group_id in map(str, range(99)) if moves_with_another(group_id))
    with ServedLake(lake, **shared) as served, consuming(served.port, **{"group.id": group}) as consumer:
        placed(consumer, group, served)
        with ServedLake(lake, **shared) as second:
            settled(served, second)
            consumer.assign([TopicPartition(ORDERS, 0)])
            assert first_offset(consumer) == 4


class LateStart:
    def __init__(self, served: ServedLake) -> None:
        (topic,) = served.topics.open
        self.is_asked = threading.Event()
        self.released = threading.Event()
        self._start = topic.start
        topic.start = self.start  # type: ignore[method-assign]

    async def start(self, partition: int) -> int:
        self.is_asked.set()
        await asyncio.to_thread(self.released.wait, SECONDS)
        return await self._start(partition)


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="librdkafka asks again where the log begins, and goes there"
)
def test_late_answer_of_an_old_assignment_moves_no_offset(tmp_path: Path) -> None:
    lake = archived(tmp_path / "lake", ROWS, end=10)
    partitions = [TopicPartition(ORDERS, 0)]
    with ServedLake(lake) as served, consuming(served.port) as consumer:
        late = LateStart(served)
        consumer.assign(partitions)
        assert late.is_asked.wait(SECONDS)
        consumer.unassign()
        topic_id = served.topics.open[0].topic_id
        served.offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=5)})
        consumer.assign(partitions)
        (position,) = consumer.committed(partitions, SECONDS)
        if position.offset != 5:
            raise ValueError(position)
        late.released.set()
        got = [message.offset() for message in consumer.consume(10, 3.0) if message.error() is None]
        assert min(got) == 5
