from __future__ import annotations

from uuid import UUID

import pytest

from archiver.errors import DataLoss
from archiver.ingest.plan.ranges import EpochsBefore, PlannedRange, plan_partition, plan_topic
from archiver.kafka.losses import check_topic_id
from archiver.topics.seen_partition import SeenPartition, furthest
from catalog.model import PartitionOffset
from catalog.offset_range import OffsetRange


def known(next_offset: int, leader_epoch: int = 3) -> PartitionOffset:
    return PartitionOffset(next_offset=next_offset, leader_epoch=leader_epoch)


def span(seen: SeenPartition) -> tuple[int, int] | None:
    planned = plan_partition("orders", seen)
    return planned and (planned.start_offset, planned.end_offset)


def test_a_partition_goes_on_where_it_stopped():
    seen = SeenPartition(partition=2, log_start=5, last_stable=90, known=known(40), epoch_end=90)
    assert plan_partition("orders", seen) == PlannedRange(
        partition=2, start_offset=40, end_offset=90, owns_head=True, epochs=EpochsBefore(archived=3)
    )


@pytest.mark.parametrize(("start", "expected"), [(None, (5, 90)), (30, (30, 90)), (90, None), (95, None)])
def test_a_new_partition_begins_where_the_configuration_says(start: int | None, expected: tuple[int, int] | None):
    assert span(SeenPartition(partition=0, log_start=5, last_stable=90, start=start)) == expected


def test_loss_before_the_first_archived_record_counts():
    late = SeenPartition(partition=0, log_start=5, last_stable=90, start=2)
    with pytest.raises(DataLoss, match=r"deleted.*lost='\[2, 5\)'"):
        plan_partition("orders", late)
    plan = plan_topic("orders", [late], accept_gaps=True)
    assert (plan.lost, plan.failed) == ((OffsetRange(0, 2, 4),), {})
    assert [(range_.start_offset, range_.end_offset) for range_ in plan.ranges] == [(5, 90)]


@pytest.mark.parametrize(
    ("seen", "lag"),
    [
        (SeenPartition(partition=0, log_start=10, last_stable=90), 80),
        (SeenPartition(partition=0, log_start=10, last_stable=90, start=85), 5),
        (SeenPartition(partition=0, log_start=10, last_stable=90, start=5), 80),
        (SeenPartition(partition=0, log_start=10, last_stable=90, start=95), 0),
        (SeenPartition(partition=0, log_start=10, last_stable=90, start=20, known=known(88)), 2),
        (SeenPartition(partition=0, log_start=10, last_stable=90, known=known(5)), 80),
    ],
)
def test_what_waits_is_what_will_be_archived(seen: SeenPartition, lag: int):
    assert seen.lag == lag


def test_a_fetch_is_told_the_epoch_before_it_but_not_after_a_gap():
    goes_on = SeenPartition(partition=0, log_start=0, last_stable=90, known=known(40), last_epoch=4)
    gone = SeenPartition(partition=0, log_start=50, last_stable=90, known=known(40), last_epoch=4)
    planned, skipped = (plan_partition("orders", partition, accept_gap=True) for partition in (goes_on, gone))
    assert planned is not None
    assert skipped is not None
    assert planned.epochs == EpochsBefore(archived=3, at_leader=4)
    assert skipped.epochs == EpochsBefore(archived=3)


def test_nothing_new_is_no_task():
    assert span(SeenPartition(partition=0, log_start=0, last_stable=40, known=known(40))) is None
    assert span(SeenPartition(partition=0, log_start=0, last_stable=0)) is None


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (SeenPartition(partition=1, log_start=50, last_stable=90, known=known(40)), r"deleted.*lost='\[40, 50\)'"),
        (SeenPartition(partition=1, log_start=0, last_stable=30, known=known(40)), r"ends before.*next_offset=40"),
        (
            SeenPartition(partition=1, log_start=0, last_stable=90, known=known(40), epoch_end=35),
            r"cut back and written anew.*diverging='\[35, 40\)'",
        ),
    ],
)
def test_a_log_that_contradicts_the_archive_is_a_loss(seen: SeenPartition, message: str):
    with pytest.raises(DataLoss, match=message) as loss:
        plan_partition("orders", seen)
    assert loss.value.context["topic"] == "orders"
    assert loss.value.context["partition"] == 1


def test_one_failed_partition_leaves_the_others():
    partitions = [
        SeenPartition(partition=0, log_start=50, last_stable=90, known=known(40)),
        SeenPartition(partition=1, log_start=0, last_stable=90, known=known(40)),
    ]
    plan = plan_topic("orders", partitions)
    assert [planned.partition for planned in plan.ranges] == [1]
    assert set(plan.failed) == {0}


def test_an_accepted_gap_is_named_and_gone_past():
    gone = SeenPartition(partition=0, log_start=50, last_stable=90, known=known(40))
    whole = SeenPartition(partition=1, log_start=50, last_stable=90, known=known(60))
    fresh = SeenPartition(partition=2, log_start=50, last_stable=90)
    emptied = SeenPartition(partition=3, log_start=90, last_stable=90, known=known(40))
    plan = plan_topic("orders", [gone, whole, fresh, emptied], accept_gaps=True)
    assert plan.failed == {}
    assert plan.lost == (OffsetRange(0, 40, 49), OffsetRange(3, 40, 89))
    assert [(range_.partition, range_.start_offset) for range_ in plan.ranges] == [(0, 50), (1, 60), (2, 50)]


def test_a_log_that_was_cut_back_is_no_gap_to_accept():
    diverged = SeenPartition(partition=0, log_start=0, last_stable=90, known=known(40), epoch_end=35)
    shorter = SeenPartition(partition=1, log_start=0, last_stable=30, known=known(40))
    plan = plan_topic("orders", [diverged, shorter], accept_gaps=True)
    assert set(plan.failed) == {0, 1}
    assert plan.lost == ()


def test_staged_ranges_count_as_archived():
    table = {0: known(10), 1: known(20)}
    staged = {0: known(15, 4), 2: known(7)}
    assert furthest(table, staged) == {0: known(15, 4), 1: known(20), 2: known(7)}
    assert furthest({0: known(10)}, {0: known(5)}) == {0: known(10)}


def test_a_topic_made_again_is_named_by_both_ids():
    first, second = UUID(int=1), UUID(int=2)
    check_topic_id("orders", archived=first, found=first)
    check_topic_id("orders", archived=None, found=second)
    with pytest.raises(DataLoss, match=rf"{first}.*{second}"):
        check_topic_id("orders", archived=first, found=second)
