"""Two `archiver expire` at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from archiver.audit.trails import find_trails
from archiver.config import load_config
from archiver.fault_points import FaultPoint
from archiver.rewrite import in_place
from archiver.storage.journal import Journal
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from archiver.upkeep.retire.report import TopicRetired
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

EACH = 5
SLOW, QUICK = "slow", "quick"
PATIENCE_SECONDS = 60.0


class Race:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, waits: bool) -> None:
        self.is_planned, self.is_committed, self.is_settled = (threading.Event() for _ in range(3))
        self._waits = waits
        self._put, self._settle = in_place.pass_point, in_place.settle_rewrites
        monkeypatch.setattr(in_place, "pass_point", self._pass)
        monkeypatch.setattr(in_place, "settle_rewrites", self._settled)

    def run(self, config: Path, topic: str, before: int) -> tuple[TopicRetired, TopicRetired]:
        def expire(name: str) -> TopicRetired:
            threading.current_thread().name = name
            if name == QUICK:
                assert self.is_planned.wait(PATIENCE_SECONDS)
            job = Expire(load_config(config), (topic,), engine=InlineEngine(), limits=RetireLimits(offset=before))
            (done,) = job.run().topics
            return done

        with ThreadPoolExecutor(2) as pool:
            slow, quick = pool.map(expire, (SLOW, QUICK))
        return slow, quick

    def _pass(self, point: Any) -> None:
        match threading.current_thread().name, point:
            case "slow", FaultPoint.BEFORE_COMMIT if not self.is_planned.is_set():
                self.is_planned.set()
                assert self.is_committed.wait(PATIENCE_SECONDS)
            case "quick", FaultPoint.AFTER_COMMIT if not self.is_committed.is_set():
                self.is_committed.set()
                assert not self._waits or self.is_settled.wait(PATIENCE_SECONDS)
        self._put(point)

    def _settled(self, *args: Any) -> Any:
        outcome = self._settle(*args)
        if threading.current_thread().name == SLOW and self.is_committed.is_set():
            self.is_settled.set()
        return outcome


def test_a_retirement_that_two_runs_want_is_recorded_once(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    for start in range(0, 3 * EACH, EACH):
        stack.produce(topic, *numbered(range(start, start + EACH)))
        archive_once(config)
    kafka = from_kafka(stack, topic, 1)
    for turn, waits in enumerate((True, False), 1):  # for the other to find the commit before it is recorded; after it
        with pytest.MonkeyPatch.context() as patch:
            for done in Race(patch, waits=waits).run(config, topic, turn * EACH):
                assert done.error is None, done.error
        assert_recorded(config, topic, turn)
        assert from_archive(config, topic, 1) == kafka[turn * EACH :]


def assert_recorded(config: Path, topic: str, acts: int) -> None:
    settings = load_config(config)
    with Workshop.of(config) as shop:
        assert shop.registry.retention.first_offsets(shop.topic) == shop.table.first_offsets == {0: acts * EACH}
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
        journaled = [item.commit for item in Journal.of(settings).of_table(shop.table).commits.read()]
        head = shop.registry.audit.head(shop.topic)
    (trail,) = find_trails(settings, [topic])
    assert trail.check(head=head).problems == []
    recorded = [entry["details"]["commit_id"] for entry in trail.entries() if entry["act"] == "expire"]
    assert len(recorded) == acts
    assert sorted(recorded) == sorted(item.commit_id for item in journaled if item.rewrite is not None)
