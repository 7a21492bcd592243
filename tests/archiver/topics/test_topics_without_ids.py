"""Topics of brokers without topic ids: Kafka before 2.8, Redpanda before 25.3 (redpanda-data/redpanda#26968).

A topic that was deleted and created again begins at the same epochs, so that answers about epochs agree.
"""

from __future__ import annotations

import pytest

from archiver.errors import DataLoss
from archiver.topics.continuity import Continuity
from archiver.topics.seen_partition import SeenPartition, check_continuity
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
