"""Orphans collected without grace beside archivers."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.errors import ObjectMissing
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import OrphansReport
from archiver.upkeep.reprocess.job import Reprocess
from schema_mapping.errors import ContextError
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, WRONG, archived_wrongly, produce
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TURNS = 8
FAULTS = ("before_stage:kill", "after_stage:kill", "before_commit:kill", "after_commit:kill", "after_upload:kill", None)


class Collector(threading.Thread):
    def __init__(self, config: Path) -> None:
        super().__init__(daemon=True)
        self._config = config
        self._over = threading.Event()
        self.deleted: list[str] = []
        self.errors: list[ContextError] = []

    def run(self) -> None:
        while not self._over.is_set():
            (topic,) = collect(self._config).topics
            self.deleted += [entry.path for entry in topic.deleted]
            self.errors += [error for error in (topic.error, *topic.failures.values()) if error is not None]

    def stop(self) -> None:
        self._over.set()
        self.join(60)


def collect(config: Path) -> OrphansReport:
    return Orphans(load_config(config), (), deletes=True).run()


def test_nothing_that_is_referred_to_goes(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    config.write_text(config.read_text().replace("[archive]", '[archive]\norphan_grace = "0s"'))
    collector = Collector(config)
    collector.start()
    try:
        for turn in range(2, TURNS + 2):
            produce(stack, topic, turn)
            archive(config, FAULTS[turn % len(FAULTS)])
            proto.write_text(RIGHT if turn % 2 else WRONG)
            with suppress(ObjectMissing):  # without grace a new file may go before its rewrite is begun: it isn't made
                Reprocess(load_config(config), topic, engine=InlineEngine()).run()
        assert archive(config).returncode == 0
    finally:
        collector.stop()
    assert not collector.errors
    collect(config)
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    referenced = {
        entry.data_file.file_path
        for snapshot in table.snapshots()
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert all(table.io.new_input(path).exists() for path in referenced)
    assert collector.deleted
    assert not referenced & set(collector.deleted)
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert from_archive(config, topic, PARTITIONS) == kafka
