"""A log's answers, and its end."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from archiver.errors import BadBatch, BatchGap, BatchTooOld, ClientFenced, ClientTaken, IntakeEnded, IntakeFull
from archiver.intake.batches import Acknowledgement, BatchPart, RowsVersion
from archiver.intake.clients import KEPT_ANSWERS, KEPT_PARTS, ClientPosition
from archiver.intake.segments import entries
from archiver.intake.topic_log import LogLimits, Outcome, TopicLog
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk


def append(log: TopicLog, batch_id: int, values: list[bytes] | None = None, *, incarnation: int = 0) -> Outcome:
    (outcome,) = log.append([batch_of("a", batch_id, {0: values or [b"%d" % batch_id]}, incarnation=incarnation)])
    return outcome


def test_a_repeated_batch_has_the_same_offsets() -> None:
    log = opened_log(LossyDisk())
    first = append(log, 0, [b"x", b"y"])
    assert first == Acknowledgement(0, (BatchPart(0, 0, 2),))
    assert append(log, 1) == Acknowledgement(1, (BatchPart(0, 2, 1),))
    assert append(log, 0, [b"x", b"y"]) == first
    assert log.next_offsets == {0: 3}


def test_rows_of_columns_have_a_kind_in_the_log() -> None:
    """Archivers that know batches alone would read the rows with the newest schema."""
    disk = LossyDisk()
    log = opened_log(disk)
    batch = batch_of("a", 0, {0: [b"x"]})
    version = RowsVersion(3, "f")
    log.append([batch, replace(batch, batch_id=1, schema_version=version)])
    (name,) = (name for name in disk.names() if name.endswith(".wal"))
    heads = [entry.head for entry in entries(disk.read(name))]
    assert [head["kind"] for head in heads] == ["batch", "rows"]
    assert [logged.schema_version for logged, _ in log.batches({})] == [None, version]


def test_a_gap_names_the_expected_batch() -> None:
    log = opened_log(LossyDisk())
    outcome = append(log, 3)
    assert isinstance(outcome, BatchGap)
    assert outcome.context["expected"] == 0
    assert log.next_offsets == {}


def test_an_old_batch_is_known_without_its_offsets() -> None:
    log = opened_log(LossyDisk())
    for number in range(KEPT_ANSWERS + 1):
        append(log, number)
    assert isinstance(append(log, 0), BatchTooOld)
    assert isinstance(append(log, 1), Acknowledgement)


def test_other_rows_with_a_used_id_are_refused() -> None:
    log = opened_log(LossyDisk())
    append(log, 0, [b"x"])
    outcome = append(log, 0, [b"y"])
    assert isinstance(outcome, BadBatch)
    assert "two producers have the same client name" in outcome.message


def test_a_fence_refuses_older_incarnations() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    append(log, 0)
    assert log.fence("a") == (1, 1)
    assert isinstance(append(log, 1), ClientFenced)
    assert isinstance(append(log, 1, incarnation=1), Acknowledgement)
    log = opened_log(disk, epoch=2)
    assert isinstance(append(log, 2), ClientFenced)
    assert log.position("a") == (1, 2)


def test_a_client_too_many_is_refused() -> None:
    log = opened_log(LossyDisk())
    names = [f"client {number}" for number in range(11)]
    outcomes = log.append([batch_of(name, 0, {0: [b"x"]}) for name in names])
    assert [type(outcome) for outcome in outcomes] == [Acknowledgement] * 10 + [BadBatch]


def test_a_full_log_refuses_new_batches_alone() -> None:
    limits = LogLimits(wal_bytes=128 << 10, segment_bytes=32 << 10)
    log = opened_log(LossyDisk(), limits=limits)
    number = 0
    while isinstance(outcome := append(log, number, [bytes(8 << 10)]), Acknowledgement):
        number += 1
    assert isinstance(outcome, IntakeFull)
    assert outcome.context["retry_seconds"] == 1.0
    assert isinstance(append(log, 0, [bytes(8 << 10)]), Acknowledgement)
    log.release(log.next_offsets)
    assert isinstance(append(log, number, [bytes(8 << 10)]), Acknowledgement)


def test_a_full_disk_refuses_new_batches_alone() -> None:
    disk = LossyDisk(room=100 << 10)
    log = opened_log(disk)
    number = 0
    while isinstance(outcome := append(log, number, [bytes(16 << 10)]), Acknowledgement):
        number += 1
    assert isinstance(outcome, IntakeFull)
    disk.room = 1 << 40
    assert isinstance(append(log, number, [bytes(16 << 10)]), Acknowledgement)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_segment_that_lacks_files_or_memory_ends_nothing(number: int) -> None:
    disk = LossyDisk()
    log = opened_log(disk, limits=LogLimits(wal_bytes=1 << 20, segment_bytes=4 << 10))
    append(log, 0)

    def fail(step: str) -> None:
        if step == "create":
            raise OSError(number, "Too many open files")

    disk.step = fail
    outcome = append(log, 1, [bytes(8 << 10)])
    assert isinstance(outcome, IntakeFull)
    assert outcome.message == "the write-ahead log can't have another segment: Too many open files"
    disk.step = lambda _: None
    assert isinstance(append(log, 1, [bytes(8 << 10)]), Acknowledgement)


def test_kept_answers_are_bounded_by_their_parts() -> None:
    log = opened_log(LossyDisk(), limits=LogLimits(wal_bytes=1 << 24, segment_bytes=1 << 20))
    batches = [batch_of("a", number, {partition: [b"x"] for partition in range(100)}) for number in range(20)]
    log.append(batches)
    assert isinstance(log.append(batches[-KEPT_PARTS // 100 + 1 :])[0], Acknowledgement)
    assert isinstance(log.append(batches[:1])[0], BatchTooOld)
    (_, _, _, answers) = log.state_json()["clients"]["a"]
    assert sum(len(parts) for _, _, parts in answers) <= KEPT_PARTS
    wide = batch_of("a", 20, {partition: [b"x"] for partition in range(KEPT_PARTS + 1)})
    assert log.append([wide]) == log.append([wide])


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_disk_error_ends_the_log(operation: str) -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    append(log, 0)

    def fail(step: str) -> None:
        if step == operation:
            raise OSError(errno.EIO, "Input/output error")

    disk.step = fail
    with pytest.raises(IntakeEnded, match="the write-ahead log failed: Input/output error"):
        append(log, 1)
    disk.step = lambda _: None
    for action in (lambda: append(log, 1), lambda: log.position("a"), lambda: log.fence("a")):
        with pytest.raises(IntakeEnded):
            action()
    assert log.next_offsets == {0: 1}, "the batch may not be durable"
    assert [batch.batch_id for batch, _ in log.batches({})] == [0]


@pytest.mark.parametrize("operation", ["rename", "sync_folder"])
def test_an_error_while_a_segment_is_named_ends_the_log(operation: str) -> None:
    """After a crash the new segment may exist: batches in the old one would contradict it."""
    disk = LossyDisk()
    log = opened_log(disk, limits=LogLimits(wal_bytes=1 << 20, segment_bytes=4 << 10))
    append(log, 0)

    def fail(step: str) -> None:
        if step == operation:
            raise OSError(errno.ENOSPC, "No space left on device")

    disk.step = fail
    with pytest.raises(IntakeEnded):
        append(log, 1, [bytes(8 << 10)])
    disk.step = lambda _: None
    log = opened_log(disk, epoch=2)
    assert log.position("a") == (0, 1)
    assert isinstance(append(log, 1, [bytes(8 << 10)]), Acknowledgement)


def test_many_clients_fit_into_few_segments() -> None:
    """Each segment begins with the state of all clients, so segments must not be small."""
    disk = LossyDisk()
    log = opened_log(disk, limits=LogLimits(wal_bytes=1 << 24, segment_bytes=1 << 10))
    for number in range(300):
        append(log, number)
    log.release(log.next_offsets)
    created: list[str] = []
    disk.step = lambda step: created.append(step) if step == "create" else None
    for number in range(300, 340):
        append(log, number)
    assert len(created) <= 25


def test_an_end_from_another_thread_keeps_the_file_open() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    append(log, 0)
    log.end(IntakeEnded("another process has the log"))
    with pytest.raises(IntakeEnded, match="another process"):
        append(log, 1)
    assert not any(inode.is_closed for name, inode in disk.names_now.items() if name.endswith(".wal"))


def test_rows_leave_the_disk_after_a_roll() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    log.append([batch_of("a", 0, {0: [b"secret"]})])
    assert log.roll()
    log.append([batch_of("a", 1, {0: [b"later"]})])
    log.release({0: 1})
    content = b"".join(disk.read(name) for name in disk.names())
    assert b"secret" not in content
    assert b"later" in content
    assert opened_log(disk, epoch=2).next_offsets == {0: 2}


def test_roll_without_entries_changes_nothing() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    names = disk.names()
    assert log.roll()
    assert disk.names() == names


def test_roll_without_room_is_not_done() -> None:
    log = opened_log(LossyDisk(), limits=LogLimits(wal_bytes=100 << 10, segment_bytes=64 << 10))
    log.append([batch_of("a", 0, {0: [b"x"]})])
    assert not log.roll()
    assert log.ended is None


def test_an_emptied_log_has_positions_without_rows() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    log.append([batch_of("a", 0, {0: [b"secret"]})])
    log.close()
    log.empty({0: 1})
    assert b"secret" not in b"".join(disk.read(name) for name in disk.names())
    again = opened_log(disk, epoch=2)
    assert again.position("a").next_batch_id == 1
    assert again.next_offsets == {0: 1}


def test_the_durable_state_lacks_what_was_not_synced() -> None:
    def fail(step: str) -> None:
        if step == "sync":
            raise OSError(errno.EIO, "broken")

    disk = LossyDisk()
    log = opened_log(disk)
    log.append([batch_of("a", 0, {0: [b"x"]})])
    disk.step = fail
    with pytest.raises(IntakeEnded):
        log.append([batch_of("a", 1, {0: [b"y"]})])
    state = log.durable_state()
    assert (state.sequence, state.next_offsets, state.clients.position("a").next_batch_id) == (1, {0: 1}, 1)


def test_owners_of_names_survive_a_start_and_a_new_segment() -> None:
    disk = LossyDisk()
    log = opened_log(disk)
    log.append([replace(batch_of("a", 0, {0: [b"x"]}), principal="User:alice")])
    assert isinstance(log.fence("b", "User:bob"), ClientPosition)
    log.close()
    for epoch, rolls in ((2, False), (3, True)):
        log = opened_log(disk, epoch=epoch)
        if rolls:
            log.append([replace(batch_of("a", 1, {0: [b"y"]}), principal="User:alice")])
            log.roll()
        (refused,) = log.append([replace(batch_of("a", 2, {0: [b"z"]}), principal="User:bob")])
        assert isinstance(refused, ClientTaken)
        assert isinstance(log.fence("b", "User:alice"), ClientTaken)
        with pytest.raises(ClientTaken, match="another principal sends batches with this client name"):
            log.position("a")
        assert log.position("b", "User:bob").incarnation == 1
        log.close()
