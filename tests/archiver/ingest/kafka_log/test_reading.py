"""A range of Kafka's log as records."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import BrokerUnavailable
from archiver.ingest.kafka_log.reading import KafkaReading
from archiver.ingest.plan.ranges import EpochsBefore, PlannedRange
from tests.support.kafka.logs import LogInMemory, batch
from tests.support.kafka.record_batches import Record, marker, patched

LOG = [
    batch(3, Record(), Record(), leader_epoch=5),
    patched(marker(base_offset=5, producer_id=1, commit=True), leader_epoch=6),
    batch(8, Record(), leader_epoch=6),
    patched(marker(base_offset=9, producer_id=1, commit=True), leader_epoch=8),
]
BEFORE = EpochsBefore(archived=4)


def reading(**log: Any) -> KafkaReading:
    planned = PlannedRange(partition=0, start_offset=3, end_offset=20, owns_head=True, epochs=BEFORE)
    return LogInMemory(log=LOG, **log).read(planned, plan_time_ms=0, budget_seconds=60.0)


@pytest.mark.parametrize("cuts", [(), (1, 2, 3)])
def test_records_cover_the_range_without_gaps(cuts: tuple[int, ...]) -> None:
    read = reading(cuts=cuts)
    groups = list(read.records())
    assert [(group.start_offset, group.end_offset, len(group)) for group in groups] == [(3, 9, 3), (9, 10, 0)]
    assert groups[0].content.column("offset").to_pylist() == [3, 4, 8]
    assert (read.batches, read.source_bytes) == (2, len(LOG[0]) + len(LOG[2]))


@pytest.mark.parametrize("cuts", [(), (1, 2, 3)])
def test_an_epoch_begins_with_its_first_batch(cuts: tuple[int, ...]) -> None:
    read = reading(cuts=cuts)
    list(read.records())
    assert [read.leader_epoch(end) for end in (3, 4, 5, 6, 9, 10)] == [4, 5, 5, 6, 6, 8]


def test_an_error_comes_after_what_was_read() -> None:
    read = reading(cuts=(2,), fails_after=1)
    covered: list[tuple[int, int]] = []

    def take() -> None:
        covered.extend((group.start_offset, group.end_offset) for group in read.records())

    with pytest.raises(BrokerUnavailable):
        take()
    assert covered == [(3, 5), (5, 6)]
    assert read.leader_epoch(6) == 6
