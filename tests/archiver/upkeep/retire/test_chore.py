"""Retirement chores never stop the job."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from archiver.chores.chore import REST_SECONDS
from archiver.config import load_config
from archiver.upkeep.retire.chore import retirement
from archiver.upkeep.retire.job import Expire
from archiver.upkeep.retire.report import ExpireReport, TopicRetired
from tests.support.maintenance.chore_states import ChoreStates, ChoreTurns

CONFIG = (
    '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
    '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n'
    '[topics.orders]\nretention = "90d"\nexpire = "auto"\n[topics.clicks]\nretention = "90d"\n'
)


def written(tmp_path: Path) -> Path:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize("fault", [ValueError("nobody foresaw this"), MemoryError()])
def test_a_fault_nobody_foresaw_does_not_stop_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    runs: list[tuple[str, ...]] = []

    class Failing(Expire):
        def run(self) -> NoReturn:
            runs.append(self._topics)
            raise fault

    turns = ChoreTurns((retirement(load_config(written(tmp_path), {}), job_of=Failing),))
    turns.run("clicks", "orders")
    turns.run("clicks", "orders")
    assert runs == [("orders",)], "clicks isn't to be expired, and orders rests after a failure"
    assert "retirement of orders failed; archiving continues" in caplog.text
    assert type(fault).__name__ in caplog.text


def test_it_goes_on_in_the_next_pause_until_nothing_is_left(tmp_path: Path) -> None:
    outcomes = [TopicRetired(topic="orders", table="t", stopped=True), TopicRetired(topic="orders", table="t")]
    runs = list[bool]()

    class Stopping(Expire):
        def run(self) -> ExpireReport:
            runs.append(self._options.is_over())
            return ExpireReport(topics=(outcomes[len(runs) - 1],), dry_run=False, seconds=0.0)

    turns = ChoreTurns(
        (retirement(load_config(written(tmp_path), {}), job_of=Stopping),), ChoreStates(last={"orders": 7})
    )
    cursors = []
    for _ in range(3):
        turns.run("clicks", "orders")
        cursors.append(turns.states.states.get(("orders", "retirement")))
    assert runs == [False, False], "it was stopped once, then nothing was left"
    assert [state and state.cursor for state in cursors] == [None, 7, 7]
    turns.now[0] = REST_SECONDS
    over = iter([False, True])
    outcomes.append(outcomes[1])
    turns.run("orders", is_over=lambda: next(over))
    assert runs == [False, False, True], "the run gets the pause's own end"


def test_a_file_that_keeps_records_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = TopicRetired(topic="orders", table="t", kept={3: "s3://b/1"})

    class Keeping(Expire):
        def run(self) -> ExpireReport:
            return ExpireReport(topics=(result,), dry_run=False, seconds=0.0)

    ChoreTurns((retirement(load_config(written(tmp_path), {}), job_of=Keeping),)).run("orders")
    assert "a file keeps records of orders, partition 3, that should go: s3://b/1" in caplog.text


def test_a_hold_that_is_set_meanwhile_is_seen(tmp_path: Path) -> None:
    holds = list[bool]()

    class Held(Expire):
        def run(self) -> ExpireReport:
            holds.append(self._config.topic("orders").hold)
            topic = TopicRetired(topic="orders", table="t", stopped=True)
            return ExpireReport(topics=(topic,), dry_run=False, seconds=0.0)

    path = written(tmp_path)
    turns = ChoreTurns((retirement(load_config(path, {}), latest=lambda: load_config(path, {}), job_of=Held),))
    turns.run("orders")
    path.write_text(CONFIG.replace('expire = "auto"', 'expire = "auto"\nhold = true'))
    turns.run("orders")
    path.write_text("no configuration")
    turns.run("orders")
    assert holds == [False, True], "and nothing goes while the configuration can't be read"
