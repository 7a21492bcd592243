"""The appending thread: groups and positions."""

from __future__ import annotations

from threading import Event

import pytest

from archiver.errors import IntakeEnded
from archiver.intake.log_thread import LogThread
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk

PATIENCE = 30.0


def test_a_position_waits_for_the_sync() -> None:
    """Else a client would never send a batch again that isn't durable."""
    syncing, go = Event(), Event()
    disk = LossyDisk()
    log = LogThread(opened_log(disk), name="t")

    def step(name: str) -> None:
        if name == "sync":
            syncing.set()
            assert go.wait(PATIENCE)

    disk.step = step
    answer = log.append(batch_of("a", 0, {0: [b"x"]}))
    assert syncing.wait(PATIENCE)
    position = log.position("a")
    assert not position.done()
    go.set()
    assert position.result(PATIENCE) == (0, 1)
    assert answer.done()
    log.close()


def test_batches_that_wait_during_a_sync_are_one_group() -> None:
    syncing, go = Event(), Event()
    syncs: list[str] = []
    disk = LossyDisk()
    log = LogThread(opened_log(disk), name="t")

    def step(name: str) -> None:
        if name == "sync":
            syncs.append(name)
            syncing.set()
            assert go.wait(PATIENCE)

    disk.step = step
    answers = [log.append(batch_of("a", 0, {0: [b"x"]}))]
    assert syncing.wait(PATIENCE)
    answers += [log.append(batch_of("a", number, {0: [b"x"]})) for number in range(1, 20)]
    go.set()
    assert [answer.result(PATIENCE).parts[0].base_offset for answer in answers] == list(range(20))
    assert len(syncs) == 2
    log.close()


def test_a_closed_log_refuses_batches_and_positions() -> None:
    log = LogThread(opened_log(LossyDisk()), name="t")
    log.close()
    for request in (log.append(batch_of("a", 0, {0: [b"x"]})), log.position("a"), log.fence("a")):
        with pytest.raises(IntakeEnded, match="the server stops taking in rows"):
            request.result(PATIENCE)
