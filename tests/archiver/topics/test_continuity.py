"""Records prove continuity; epochs raise suspicion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from archiver.errors import DataLoss
from archiver.kafka import EpochEnd
from archiver.topics import divergence
from archiver.topics.continuity import Continuity
from archiver.topics.divergence import AT_ONCE, spans
from archiver.topics.seen_partition import SeenPartition, check_continuity
from catalog.model import PartitionOffset
from tests.support.kafka.histories import ArchivedLog, History


def archive(log: History) -> tuple[ArchivedLog, PartitionOffset]:
    epoch = max((batch.epoch for batch in log.batches), default=-1)
    return ArchivedLog(log.records()), PartitionOffset(next_offset=log.end, leader_epoch=epoch)


def judge(
    log: History,
    archived: ArchivedLog,
    known: PartitionOffset,
    proven: dict[int, PartitionOffset] | None = None,
    *,
    first: int = 0,
    answer: EpochEnd | None = None,
) -> SeenPartition:
    continuity = Continuity(
        "orders",
        epochs=log,
        log=log.read,
        archived=lambda: archived,
        starts=lambda: {0: first},
        proven={} if proven is None else proven,
    )
    seen = SeenPartition(partition=0, log_start=0, last_stable=log.end, known=known)
    if answer is None and known.leader_epoch >= 0:
        answer = log.end_of(known.leader_epoch)
    return continuity.judged(seen, answer)


def loss(seen: SeenPartition) -> str | None:
    with pytest.raises(DataLoss) as caught:
        check_continuity("orders", seen)
    return caught.value.context.get("differs")


def with_marker() -> History:
    log = History()
    log.append(records=10)
    log.elect()
    log.append(hidden=1)
    return log


def test_what_is_as_it_was_is_not_looked_into() -> None:
    archived, end = archive(log := with_marker())
    seen = judge(log, archived, end)
    assert (seen.epoch_end, seen.last_epoch, archived.reads) == (None, 1, 0)


def test_an_epoch_that_is_too_small_is_put_right_once() -> None:
    archived, _ = archive(log := with_marker())
    end, proven = PartitionOffset(next_offset=11, leader_epoch=0), {}
    assert judge(log, archived, end, proven).last_epoch == 1
    assert proven == {0: PartitionOffset(next_offset=11, leader_epoch=1)}
    before = archived.reads
    assert judge(log, archived, end, proven).last_epoch == 1
    assert archived.reads == before, "what was proven is not read again"


def test_proof_is_dropped_after_a_truncation() -> None:
    archived, _ = archive(log := with_marker())
    end, proven = PartitionOffset(next_offset=11, leader_epoch=0), {}
    judge(log, archived, end, proven)
    log.cut(10)
    log.append(records=5)
    assert loss(judge(log, archived, end, proven)) == "in the log and not archived: [10, 11)"


def test_a_marker_that_compaction_took_before_it_was_seen() -> None:
    log = with_marker()
    log.elect()
    log.append(records=1)
    log.compact(1)
    archived, _ = ArchivedLog({offset: record for offset, record in log.records().items() if offset < 11}), None
    seen = judge(log, archived, PartitionOffset(next_offset=11, leader_epoch=0))
    assert (seen.epoch_end, seen.last_epoch) == (None, 1)


def test_leader_may_lack_a_compacted_epoch() -> None:
    archived, end = archive(log := with_marker())
    log.elect()
    log.append(records=1)
    log.compact(1)
    log.forget()
    seen = judge(log, archived, end)
    assert (seen.epoch_end, seen.last_epoch) == (None, 0)


def test_a_leader_of_the_past_whose_own_records_nobody_else_had() -> None:
    archived, end = archive(log := with_marker())
    log.wake(0, records=5)
    assert log.end_of(end.leader_epoch).end_offset > end.next_offset, "the epoch's end alone doesn't show it"  # type: ignore[union-attr]
    assert loss(judge(log, archived, end)) == "in the log and not archived: [10, 11)"


def test_what_compaction_took_from_the_log_is_no_difference() -> None:
    log = History()
    for _ in range(5):
        log.append(records=2)
    archived, end = archive(log)
    log.compact(4)
    log.compact(2)
    log.elect()
    log.append(hidden=1)
    seen = judge(log, archived, PartitionOffset(next_offset=end.next_offset, leader_epoch=0))
    assert seen.epoch_end is None


def test_a_log_cut_back_is_told_by_its_records() -> None:
    log = History()
    for _ in range(10):
        log.append(records=2)
    archived, end = archive(log)
    log.cut(12)
    assert loss(judge(log, archived, end)) == "gone from the log: [12, 20)"
    log.append(records=3)
    assert loss(judge(log, archived, end)) == "gone from the log: [15, 20); other records than archived: [12, 15)"
    log.append(hidden=10)
    assert loss(judge(log, archived, end)) == "gone from the log: [15, 20); other records than archived: [12, 15)"


def test_what_the_log_no_longer_has_at_all_can_not_be_compared() -> None:
    archived, end = archive(log := with_marker())
    log.cut(5)
    log.append(records=20)
    seen = SeenPartition(partition=0, log_start=20, last_stable=log.end, known=end)
    continuity = Continuity("orders", epochs=log, log=log.read, archived=lambda: archived, starts=dict, proven={})
    judged = continuity.judged(seen, log.end_of(end.leader_epoch))
    with pytest.raises(DataLoss, match="gone from the log"):
        check_continuity("orders", judged, accept_gap=True)


def test_records_before_the_archive_began_are_not_missing() -> None:
    log = History()
    log.append(records=10)
    log.elect()
    log.append(records=1)
    log.append(hidden=1)
    archived, end = (
        ArchivedLog({offset: record for offset, record in log.records().items() if offset == 10}),
        archive(log)[1],
    )
    log.elect()
    log.append(records=1)
    log.compact(2)
    log.compact(1)
    log.forget()
    assert loss(judge(log, archived, end)) == "gone from the log: [10, 11); in the log and not archived: [0, 10)"
    assert loss(judge(log, archived, end, first=10)) == "gone from the log: [10, 11)"


STEPS: dict[str, Callable[[History, int], None]] = {
    "records": lambda log, size: log.append(records=size + 1),
    "hidden": lambda log, size: log.append(hidden=size + 1),
    "elect": lambda log, _: log.elect(),
    "compact": lambda log, position: log.compact(position),
    "forget": lambda log, _: log.forget(),
    "cut": lambda log, by: log.cut(max(0, log.end - by)),
    "wake": lambda log, size: log.wake(max(0, log.epoch - 1 - size // 2), size + 1),
}
STEP = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 4))


@given(before=st.lists(STEP, max_size=12), after=st.lists(STEP, max_size=8), too_small=st.booleans())
def test_only_records_decide(before: list[tuple[str, int]], after: list[tuple[str, int]], *, too_small: bool) -> None:
    steps = {name for name, _ in after}
    assume(not ("forget" in steps and steps & {"cut", "wake"}))  # then no replica is left that knows of the cut
    log = History()
    for name, size in before:
        STEPS[name](log, size)
    archived, last = archive(log)
    if too_small and archived.records and "wake" not in steps:
        last = PartitionOffset(
            next_offset=last.next_offset, leader_epoch=max(of for _, of in archived.records.values())
        )
    for name, size in after:
        STEPS[name](log, size)
    has = {offset: number for offset, (number, _) in log.records().items() if offset < last.next_offset}
    kept = {offset: number for offset, (number, _) in archived.records.items()}
    gone = {offset for offset, number in kept.items() if has.get(offset) != number and number not in log.compacted}
    new = {offset for offset, number in has.items() if kept.get(offset) != number}
    seen = judge(log, archived, last)
    if gone or new:
        assert seen.epoch_end is not None, (gone, new)
        assert seen.epoch_end <= min(gone | new)
    elif log.end >= last.next_offset:
        taken = {offset for offset, number in kept.items() if number in log.compacted}
        if seen.epoch_end is not None:  # nobody knows any more whether they were cut off or compacted
            assert {"forget", "cut", "wake"} & steps
            assert seen.differs == f"gone from the log: {spans(sorted(taken - {*range(seen.epoch_end)}))}"
        if seen.last_epoch >= 0:
            answer = log.end_of(seen.last_epoch)
            assert answer is not None
            assert (answer.leader_epoch, answer.end_offset >= last.next_offset) == (seen.last_epoch, True)


@dataclass
class MeasuredLog(ArchivedLog):
    widest: int = 0

    def read(self, partition: int, start_offset: int, end_offset: int) -> pa.RecordBatch:
        self.widest = max(self.widest, end_offset - start_offset)
        return super().read(partition, start_offset, end_offset)


def test_memory_does_not_grow_with_what_is_in_doubt() -> None:
    log = History()
    log.append(records=1)
    far = 20 * AT_ONCE
    archived = MeasuredLog(log.records() | {far - 1: (1, 5)})
    seen = judge(
        log, archived, PartitionOffset(next_offset=far, leader_epoch=5), answer=EpochEnd(leader_epoch=0, end_offset=1)
    )
    assert archived.widest <= AT_ONCE
    assert loss(seen) == f"gone from the log: [{far - 1}, {far})"


def test_a_log_that_lost_nearly_all_is_told_without_naming_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divergence, "AT_ONCE", 4)
    monkeypatch.setattr(divergence, "ENOUGH", 6)
    log = History()
    log.append(records=1)
    archived = ArchivedLog(log.records() | {offset: (offset, 5) for offset in range(1, 100)})
    seen = judge(
        log, archived, PartitionOffset(next_offset=100, leader_epoch=5), answer=EpochEnd(leader_epoch=0, end_offset=1)
    )
    assert loss(seen) == "gone from the log: [1, 9); not compared from 9 on"
