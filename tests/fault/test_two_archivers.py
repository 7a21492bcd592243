"""Two archivers without the lease."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from catalog.model import FileState
from catalog.registry import Registry
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import EACH, PARTITIONS, assert_each_once, produce
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

TURNS = 4


@pytest.mark.usefixtures("without_lease")
def test_records_are_single_though_two_work_at_once(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    start = threading.Barrier(2)
    for turn in range(TURNS):
        produce(stack, topic, turn * 1_000)
        rivals = [threading.Thread(target=_archive, args=(config, start)) for _ in range(2)]
        for rival in rivals:
            rival.start()
        for rival in rivals:
            rival.join()
    last = _run(config)
    assert last.succeeded, last
    assert_each_once(stack, config, topic, TURNS * EACH)
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        assert registry.files.counts(row)[FileState.REJECTED].ranges > 0, "they never met"


def _archive(config: Path, start: threading.Barrier) -> None:
    start.wait(60)
    _run(config)


def _run(config: Path) -> JobReport:
    return ArchiveJob(load_config(config), engine=InlineEngine()).run_once()
