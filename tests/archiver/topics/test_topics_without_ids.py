"""Topics of brokers without topic ids: Kafka before 2.8, Redpanda before 25.3 (redpanda-data/redpanda#26968).

A topic that was deleted and created again begins at the same epochs, so that answers about epochs agree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest

from archiver.errors import DataLoss, StorageDenied
from archiver.topics.continuity import Continuity
from archiver.topics.divergence import differences
from archiver.topics.seen_partition import SeenPartition, check_continuity
from archiver.wire import DecodedBatches
from catalog.errors import CatalogUnreachable, TableMissing
from catalog.model import PartitionOffset
from tests.support.kafka.histories import ArchivedLog, History


def history(batches: int, *, numbers: int = 0) -> History:
    log = History(numbers=numbers, policy=False)
    for _ in range(batches):
        log.append(records=10)
    return log


def judge(log: History, archived: ArchivedLog, end: int, *, has_id: bool, epoch: int = 0) -> SeenPartition:
    continuity = Continuity(
        "orders", epochs=log, log=log.read, archived=lambda: archived, starts=lambda: {0: 0}, proven={}
    )
    archived_to = PartitionOffset(next_offset=end, leader_epoch=epoch)
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to)
    return continuity.judged(seen, log.end_of(epoch), has_id=has_id)


def test_a_longer_topic_of_the_same_epoch_is_found() -> None:
    archived, recreated = ArchivedLog(history(5).records()), history(8, numbers=1_000)
    with pytest.raises(DataLoss, match=r"deleted and created again.*other records than archived: \[0, 50\)"):
        check_continuity("orders", judge(recreated, archived, 50, has_id=False))


def test_a_recreated_topic_with_elections_is_found() -> None:
    log = history(5)
    log.elect()
    log.append(records=10)
    archived, recreated = ArchivedLog(log.records()), history(3, numbers=1_000)
    recreated.elect()
    for _ in range(5):
        recreated.append(records=10)
    assert judge(recreated, archived, 60, has_id=False, epoch=1).epoch_end == 0


def test_the_same_topic_goes_on() -> None:
    log = history(5)
    archived = ArchivedLog(log.records())
    log.append(records=10)
    seen = judge(log, archived, 50, has_id=False)
    assert (seen.epoch_end, seen.last_epoch, seen.proves_epochs) == (None, 0, True)
    assert archived.reads


@pytest.mark.parametrize(("more", "has_id"), [(0, False), (1, True)])
def test_nothing_is_read_without_need(more: int, has_id: bool) -> None:
    """Either nothing new would be archived, or the topic's id was compared."""
    log = history(5)
    archived = ArchivedLog(log.records())
    for _ in range(more):
        log.append(records=10)
    assert judge(log, archived, 50, has_id=has_id).epoch_end is None
    assert not archived.reads


def opened_by(archived: Callable[[], ArchivedLog], log: History) -> Continuity:
    return Continuity("orders", epochs=log, log=log.read, archived=archived, starts=lambda: {0: 0, 1: 0}, proven={})


@pytest.mark.parametrize("error", [CatalogUnreachable("away"), StorageDenied("no read")])
def test_an_archive_that_cant_be_read_stops_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    log, opened = history(5), []

    def away() -> ArchivedLog:
        opened.append(log)
        raise error

    continuity = opened_by(away, log)
    archived_to = PartitionOffset(next_offset=30, leader_epoch=0)
    with caplog.at_level(logging.WARNING):
        for partition in (0, 1):
            seen = SeenPartition(partition=partition, log_start=0, last_stable=log.end, known=archived_to)
            judged = continuity.judged(seen, log.end_of(0), has_id=False)
            assert (judged.epoch_end, judged.last_epoch, judged.proves_epochs) == (None, 0, True)
    assert len(opened) == 1
    (warning,) = caplog.messages
    assert "orders" in warning
    assert str(error) in warning


def test_a_missing_table_is_still_an_error() -> None:
    def missing() -> ArchivedLog:
        raise TableMissing("gone")

    log = history(5)
    archived_to = PartitionOffset(next_offset=30, leader_epoch=0)
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to)
    with pytest.raises(TableMissing):
        opened_by(missing, log).judged(seen, log.end_of(0), has_id=False)


def test_records_compacted_before_a_new_policy_are_no_loss() -> None:
    log = history(5)
    archived = ArchivedLog(log.records())
    log.append(records=1)
    log.compact(4)
    assert judge(log, archived, 50, has_id=False).epoch_end is None


def test_a_log_without_any_archived_record_is_found() -> None:
    archived, recreated = ArchivedLog(history(5).records()), History(policy=False)
    recreated.append(hidden=60)
    assert judge(recreated, archived, 50, has_id=False).differs == "gone from the log: [0, 50)"


class TwiceArchived(ArchivedLog):
    """Offset 7 has the log's row and another one."""

    def read(self, partition: int, start_offset: int, end_offset: int) -> pa.RecordBatch:
        rows = super().read(partition, start_offset, end_offset)
        again = ArchivedLog({7: (7_777, 0)}).records if start_offset <= 7 < end_offset else {}
        extra = ArchivedLog(again).read(partition, 0, 50) if again else rows.slice(0, 0)
        return pa.Table.from_batches([rows, extra]).sort_by("offset").combine_chunks().to_batches()[0]


def test_an_offset_that_is_archived_twice_stops_nothing() -> None:
    log = history(5)
    archived = TwiceArchived(log.records())
    log.append(records=10)
    assert judge(log, archived, 50, has_id=False).epoch_end is None
    result = differences(log.read(0, 0, 50), partial(archived.read, 0), partition=0, start_offset=0, end_offset=50)
    assert (result.text, result.shared) == ("archived more than once: [7, 8)", 50)
    other = TwiceArchived(archived.records | {7: (8_888, 0)})
    assert judge(log, other, 50, has_id=False).differs == "other records than archived: [7, 8)"


class PiecewiseHistory(History):
    """Counts records that were read."""

    count = 0

    def read(self, partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        for start in range(start_offset, end_offset, 1_000):
            for piece in super().read(partition, start, min(start + 1_000, end_offset)):
                self.count += piece.records.num_rows
                yield piece


@pytest.mark.parametrize("kept", [{}, {100: (100, 0), 29_000: (29_000, 0)}])
def test_a_poor_archive_does_not_have_the_whole_log_read(kept: dict[int, tuple[int, int]]) -> None:
    log = PiecewiseHistory(policy=False)
    for _ in range(30):
        log.append(records=1_000)
    end = log.end
    log.append(records=1)
    continuity = Continuity(
        "orders",
        epochs=log,
        log=log.read,
        archived=lambda: ArchivedLog(kept),
        starts=lambda: {0: 0},
        proven={},
        newest_bytes=20_000,
    )
    archived_to = PartitionOffset(next_offset=end, leader_epoch=0)
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to)
    assert continuity.judged(seen, log.end_of(0), has_id=False).epoch_end is None
    assert log.count <= 4_000
