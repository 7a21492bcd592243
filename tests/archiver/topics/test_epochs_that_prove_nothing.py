"""Brokers with meaningless answers about epochs.

franz-go#699 (epoch 0 and end 0 always), opentelemetry-collector-contrib#42226, aiven/inkless#249.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from archiver.errors import DataLoss
from archiver.kafka import EpochEnd
from archiver.topics.continuity import Continuity
from archiver.topics.seen_partition import SeenPartition, check_continuity
from archiver.wire import DecodedBatches
from catalog.model import PartitionOffset
from tests.support.kafka.histories import ArchivedLog, History

ZERO = EpochEnd(leader_epoch=0, end_offset=0)


@dataclass
class StubbedHistory(History):
    answer: EpochEnd | None = ZERO
    says_epoch: bool = True
    spans: list[tuple[int, int]] = field(default_factory=list)

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        del topic
        return {partition: self.answer for partition in epochs if self.answer is not None}

    def current_epoch(self, topic: str, partition: int) -> int:
        return super().current_epoch(topic, partition) if self.says_epoch else -1

    def read(self, partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        self.spans.append((start_offset, end_offset))
        return super().read(partition, start_offset, end_offset)


def archived_log(*, says_epoch: bool = True, answer: EpochEnd | None = ZERO) -> tuple[StubbedHistory, ArchivedLog]:
    log = StubbedHistory(says_epoch=says_epoch, answer=answer)
    for _ in range(200):
        log.append(records=10)
    return log, ArchivedLog(log.records())


def judge(
    log: StubbedHistory, archived: ArchivedLog, *, end: int = 2_000, epoch: int = 0, newest: int = 9_000
) -> SeenPartition:
    continuity = Continuity(
        "orders",
        epochs=log,
        log=log.read,
        archived=lambda: archived,
        starts=lambda: {0: 0},
        proven={},
        newest_bytes=newest,
    )
    archived_to = PartitionOffset(next_offset=end, leader_epoch=epoch)
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to)
    return continuity.judged(seen, log.answer)


@pytest.mark.parametrize("says_epoch", [True, False])
@pytest.mark.parametrize("answer", [ZERO, None])
def test_only_the_newest_records_are_compared(says_epoch: bool, answer: EpochEnd | None) -> None:
    log, archived = archived_log(says_epoch=says_epoch, answer=answer)
    log.append(records=5)
    seen = judge(log, archived)
    assert (seen.epoch_end, seen.last_epoch, seen.proves_epochs) == (None, -1, False)
    rows = archived.read(0, 0, 2_000)
    compared = max(end - start for start, end in log.spans)
    assert 60 < compared <= 9_000 * rows.num_rows // rows.nbytes + 1


@pytest.mark.parametrize("says_epoch", [True, False])
@pytest.mark.parametrize("answer", [ZERO, None])
@pytest.mark.parametrize("policy", [True, False, None])
def test_a_recreated_topic_is_found(says_epoch: bool, answer: EpochEnd | None, policy: bool | None) -> None:
    log, archived = archived_log(says_epoch=says_epoch, answer=answer)
    new = StubbedHistory(numbers=1_000_000, says_epoch=says_epoch, answer=answer, policy=policy)
    for _ in range(300):
        new.append(records=10)
    with pytest.raises(DataLoss, match="other records than archived") as caught:
        check_continuity("orders", judge(new, archived))
    assert log.end == 2_000
    assert "2000)" in str(caught.value.context["differs"])


def test_a_cut_log_that_grew_again_is_found() -> None:
    log, archived = archived_log()
    log.cut(1_950)
    log.append(records=30)
    log.append(hidden=30)
    with pytest.raises(DataLoss, match=r"\[1980, 2000\); other records than archived: \[1950, 1980\)"):
        check_continuity("orders", judge(log, archived))


@pytest.mark.parametrize(("policy", "is_loss"), [(True, False), (None, False), (False, True)])
def test_compaction_is_no_divergence(policy: bool | None, is_loss: bool) -> None:
    log, archived = archived_log()
    log.policy = policy
    log.append(records=1)
    log.compact(199)
    log.compact(190)
    assert (judge(log, archived).epoch_end is not None) is is_loss


def test_zero_from_an_empty_replica_is_compared_in_full() -> None:
    """A leader that began its log again in a later epoch gives the same, true answer."""
    log = History()
    log.append(records=50)
    archived = ArchivedLog(log.records())
    log.cut(0)
    log.append(records=1)
    log.append(hidden=100)
    answer = log.end_of(0)
    assert answer is None or answer.end_offset == 0
    continuity = Continuity("o", epochs=log, log=log.read, archived=lambda: archived, starts=dict, proven={})
    archived_to = PartitionOffset(next_offset=50, leader_epoch=0)
    seen = continuity.judged(SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to), ZERO)
    assert seen.proves_epochs
    assert seen.differs == "gone from the log: [1, 50); other records than archived: [0, 1)"


def test_a_leader_that_moves_during_the_check_is_believed() -> None:
    log, archived = archived_log()
    moves = iter(range(100, 200))
    log.current_epoch = lambda topic, partition: next(moves)  # type: ignore[method-assign]
    assert judge(log, archived).proves_epochs


@pytest.mark.parametrize("says_epoch", [True, False])
def test_records_without_epochs_are_compared(says_epoch: bool) -> None:
    """Brokers without epochs wrote them (Metadata before version 7), or their format is older than version 2."""
    log, archived = archived_log(answer=None, says_epoch=says_epoch)
    log.append(records=5)
    seen = judge(log, archived, epoch=-1)
    assert (seen.epoch_end, seen.proves_epochs) == (None, says_epoch)
    assert log.spans
    new = StubbedHistory(numbers=1_000_000, says_epoch=says_epoch, answer=None)
    for _ in range(300):
        new.append(records=10)
    with pytest.raises(DataLoss, match="other records than archived"):
        check_continuity("orders", judge(new, archived, epoch=-1))


def test_nothing_is_compared_before_the_first_archived_record() -> None:
    log, archived = archived_log(answer=None, says_epoch=False)
    continuity = Continuity("o", epochs=log, log=log.read, archived=lambda: archived, starts=lambda: {0: 70}, proven={})
    archived_to = PartitionOffset(next_offset=70, leader_epoch=-1)
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=archived_to)
    assert continuity.judged(seen, None) == seen
    assert not log.spans


def test_one_record_is_compared_at_least() -> None:
    log = StubbedHistory()
    log.append(records=3)
    archived = ArchivedLog(log.records() | {2: (99, 0)})
    with pytest.raises(DataLoss, match=r"\[2, 3\)"):
        check_continuity("orders", judge(log, archived, end=3, newest=1))
    assert log.spans == [(2, 3)]


def test_records_that_the_archive_left_out_are_no_divergence() -> None:
    """They were erased, retired, or accepted as lost; the log may still have them."""
    log, archived = archived_log()
    log.append(records=1)
    kept = {offset: record for offset, record in archived.records.items() if not 1_985 <= offset < 1_990}
    assert judge(log, ArchivedLog(kept)).epoch_end is None
