"""Ends of epochs, also of retired records."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from tests.support.archive.archived_batches import archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import Wire, request, served

NO_END = (1 << 63) - 1
BATCHES = [
    build([Record(value=b"x")] * 5, base_offset=at, leader_epoch=epoch) for at, epoch in ((0, 2), (5, 4), (10, 6))
]
END = 15


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=3)
    lake.set(**{"archiver.offsets": '{"0":[15,6]}'})
    return lake


def epoch_end(wire: Wire, epoch: int) -> tuple[int, int]:
    (partition,) = wire.ask(request(23, 4, topic="orders", partition=0, leader_epoch=epoch)).topics[0].partitions
    assert partition.error_code == ErrorCode.none
    return partition.leader_epoch, partition.end_offset


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 0)), (2, (2, 5)), (3, (2, 5)), (5, (4, 10)), (6, (6, NO_END))],
)
def test_an_epoch_below_the_first_one_ends_where_that_begins(lake: Lake, epoch: int, end: tuple[int, int]) -> None:
    with served(lake) as (_, wire):
        assert epoch_end(wire, epoch) == end


@pytest.mark.parametrize(("epoch", "end"), [(1, (1, 5)), (2, (2, 5)), (3, (3, 5)), (4, (4, 10))])
def test_epoch_of_retired_records_ends_at_the_next_begin(lake: Lake, epoch: int, end: tuple[int, int]) -> None:
    lake.retire(5)
    with served(lake) as (_, wire):
        assert epoch_end(wire, epoch) == end


def test_epochs_end_while_records_are_being_retired(lake: Lake) -> None:
    with served(lake, interval=3600.0) as (_, wire):
        lake.retire(10)
        assert epoch_end(wire, 2) == (2, 10)
        assert epoch_end(wire, 4) == (4, 10)
