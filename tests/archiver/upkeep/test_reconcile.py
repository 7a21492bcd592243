"""Obstacles between staged ranges and table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from archiver.cli import reconcile as command
from archiver.errors import ObjectMissing
from archiver.storage.journal import TableJournal
from archiver.upkeep import reconcile as reconciling
from archiver.upkeep.reconcile import ReconciledTopic, reconcile_topic
from catalog.errors import PartitionAhead
from catalog.model import TranslatedRange
from tests.support.catalog.memory import TOPIC, MemoryCatalog, change
from tests.support.catalog.staging import CatalogOfOne, StagedRanges, commit_staged, set_offset


@dataclass
class Topic:
    memory: MemoryCatalog
    files: StagedRanges = field(default_factory=StagedRanges)
    gone: tuple[TranslatedRange, ...] = ()

    @contextmanager
    def lease(self, _: Any) -> Iterator[bool]:
        yield True

    @property
    def missing(self) -> Any:
        return self

    @property
    def ledger(self) -> Any:
        return self

    @property
    def rewrites(self) -> Any:
        return self

    def load(self, _: Any, **__: Any) -> tuple[TranslatedRange, ...]:
        return self.gone

    def take_up(self, *_: Any, **__: Any) -> tuple[TranslatedRange, ...]:
        return ()

    def check_table(self, *_: Any) -> None:
        pass

    def unfinished(self, _: Any) -> tuple[()]:
        return ()

    def of_table(self, _: Any) -> TableJournal:
        return TableJournal()


@pytest.fixture
def topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    memory = MemoryCatalog(tmp_path / "table")
    made = Topic(memory)
    for partition in range(3):
        made.files.stage(tmp_path, partition, 5)
    commit_staged(memory, made.files)
    for partition in (1, 2):
        set_offset(memory, partition, 2)
    for partition in range(3):
        made.files.stage(tmp_path, partition, 5)
    staged = StagedRanges()
    made.gone = (staged.stage(tmp_path, 7, 5),)
    (tmp_path / f"{made.gone[0].id}.parquet").unlink()

    monkeypatch.setattr(reconciling, "newest_columns", lambda *_: change())
    return made


def reconciled(topic: Topic) -> ReconciledTopic:
    servers = cast("Any", topic)
    return reconcile_topic(TOPIC, servers, servers, cast("Any", CatalogOfOne(topic.memory, topic.memory.apply)))


def test_every_partition_ahead_is_named_and_so_are_missing_files(topic: Topic) -> None:
    done = reconciled(topic)
    assert (done.landed, done.waiting) == (1, 2)
    assert [type(error) for error in done.errors] == [PartitionAhead, PartitionAhead, ObjectMissing]
    assert [error.context.get("partition") for error in done.errors] == [1, 2, None]
    assert done.errors[2].context["files"] == [file.path for file in topic.gone[0].files]
    assert done.error is done.errors[0]


def test_machines_are_told_all_of_them(topic: Topic, capsys: pytest.CaptureFixture[str]) -> None:
    done = reconciled(topic)
    command.write_reconciled(done)
    document = json.loads(capsys.readouterr().out)
    assert [error["kind"] for error in document["errors"]] == ["PartitionAhead", "PartitionAhead", "ObjectMissing"]
