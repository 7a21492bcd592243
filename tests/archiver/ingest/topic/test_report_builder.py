"""Which partitions are given up."""

from __future__ import annotations

import pytest

from archiver.errors import BrokerUnavailable, CorruptBatch, DataLoss, NoProgress, TaskInterrupted
from archiver.ingest.events import Failed, JobEvent
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.ingest.topic.report_builder import TRIES, TopicReportBuilder
from archiver.observer import ignore
from catalog.errors import PartitionAhead
from tests.support.catalog.memory import span


class Failures:
    def __init__(self) -> None:
        self.told: list[tuple[int | None, str]] = []

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, Failed):
            self.told.append((event.partition, type(event.error).__name__))


@pytest.fixture
def observer() -> Failures:
    return Failures()


@pytest.fixture
def builder(observer: Failures) -> TopicReportBuilder:
    return TopicReportBuilder("orders", "kafka.orders", observer)


def test_what_time_heals_is_tried_in_a_few_waves(builder: TopicReportBuilder, observer: Failures) -> None:
    for wave in range(TRIES):
        assert builder.given_up == ()
        builder.begin_wave()
        for _ in range(8):
            builder.judge(0, BrokerUnavailable(f"wave {wave}"))
    assert builder.given_up == (0,)
    assert observer.told == [(0, "BrokerUnavailable")]


def test_progress_forgives(builder: TopicReportBuilder) -> None:
    for _ in range(10):
        builder.begin_wave()
        builder.judge(0, NoProgress("nothing"))
        builder.progressed(0)
    assert builder.given_up == ()


def test_what_does_not_heal_is_given_up_at_once_and_told_once(builder: TopicReportBuilder, observer: Failures) -> None:
    builder.begin_wave()
    builder.judge(3, CorruptBatch("bad"))
    builder.judge(3, CorruptBatch("bad, too"))
    builder.judge(3, BrokerUnavailable("away"))
    assert observer.told == [(3, "CorruptBatch")]
    ((partition, error),) = builder.report().failures
    assert (partition, str(error)) == (3, "bad")


def test_a_stop_is_no_error(builder: TopicReportBuilder) -> None:
    for _ in range(10):
        builder.begin_wave()
        builder.judge(0, TaskInterrupted("stopped"))
    assert builder.report().failures == ()


@pytest.mark.parametrize(("gaps", "given_up"), [(False, (0,)), (True, ())])
def test_a_loss_that_will_be_accepted_is_tried_again(gaps: bool, given_up: tuple[int, ...]) -> None:
    builder = TopicReportBuilder("orders", "kafka.orders", ignore, acceptable=AcceptedLosses(gaps=gaps).errors)
    builder.begin_wave()
    builder.judge(0, DataLoss("gone"))
    assert builder.given_up == given_up


def test_landed_ranges_add_up_by_partition(builder: TopicReportBuilder) -> None:
    builder.committed([span(1, 5, 7), span(0, 10, 20), span(0, 0, 10)])
    landed = [
        (partition.partition, partition.from_offset, partition.to_offset, partition.records)
        for partition in builder.report().partitions
    ]
    assert landed == [(0, 0, 20, 20), (1, 5, 7, 2)]


def test_partition_left_out_of_a_commit_is_named_till_taken(builder: TopicReportBuilder, observer: Failures) -> None:
    ahead = PartitionAhead("ahead", partition=3)
    builder.committed([span(0, 0, 5)])
    for _ in range(2):
        builder.left_out({3: ahead})
    assert observer.told == [(3, "PartitionAhead")]
    assert builder.report().failures == ((3, ahead),)
    assert builder.given_up == (), "its records are fetched all the same, and wait with those"
    builder.left_out({})
    builder.committed([span(3, 5, 9)])
    assert builder.report().failures == ()
