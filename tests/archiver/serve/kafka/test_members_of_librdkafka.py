"""Members that use librdkafka, while the server is slow: none gets stuck, and none begins anew but by its own fault."""

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
from catalog.registry import GroupOffset
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import OffsetsInMemory, ServedLake

ORDERS = "orders"
SECONDS = 20.0


class AwayForAMoment(OffsetsInMemory):
    """Offsets that can't be read the first times."""

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
def test_a_member_whose_offsets_cannot_be_read_at_first_goes_on_at_them(tmp_path: Path, protocol: str) -> None:
    offsets = AwayForAMoment(times=3)
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, offsets=offsets) as served:
        topic_id: UUID = served.topics.open[0].topic_id
        offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=4)})
        with consuming(served.port, **{"group.protocol": protocol}) as consumer:
            consumer.subscribe([ORDERS])
            assert first_offset(consumer) == 4
        assert offsets.times == 0


class LateStart:
    """Where a partition begins, told only once it is `released`."""

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
def test_a_late_answer_about_an_assignment_before_moves_nobody_from_the_committed_offset(tmp_path: Path) -> None:
    """A member asks where the log begins, as nothing is committed; loses its partition, and gets it again."""
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    place = [TopicPartition(ORDERS, 0)]
    with ServedLake(lake) as served, consuming(served.port) as consumer:
        late = LateStart(served)
        consumer.assign(place)
        assert late.is_asked.wait(SECONDS)
        consumer.unassign()
        topic_id = served.topics.open[0].topic_id
        served.offsets.commit("g", {(ORDERS, 0): GroupOffset(topic_id=topic_id, offset=5)})
        consumer.assign(place)
        (told,) = consumer.committed(place, SECONDS)
        if told.offset != 5:
            raise ValueError(told)
        late.released.set()
        got = [message.offset() for message in consumer.consume(10, 3.0) if message.error() is None]
        assert min(got) == 5
