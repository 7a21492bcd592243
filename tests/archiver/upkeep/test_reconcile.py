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
from archiver.config import Config
from archiver.errors import ObjectMissing
from archiver.storage.journal import TableJournal
from archiver.upkeep import reconcile as reconciling
from archiver.upkeep.reconcile import reconcile
from catalog.errors import PartitionAhead
from catalog.model import TranslatedRange
from tests.support.catalog.memory import TOPIC, MemoryCatalog, change
from tests.support.catalog.staging import CatalogOfOne, StagedRanges, commit_staged, set_offset


@dataclass
class Topic:
    memory: MemoryCatalog
    files: StagedRanges = field(default_factory=StagedRanges)
    gone: tuple[TranslatedRange, ...] = ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

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

    @contextmanager
    def catalog(_: Any) -> Iterator[CatalogOfOne]:
        yield CatalogOfOne(memory, memory.apply)

    monkeypatch.setattr(reconciling, "Registry", lambda _: made)
    monkeypatch.setattr(reconciling, "TableCatalog", catalog)
    monkeypatch.setattr(reconciling, "Journal", type("Journal", (), {"of": staticmethod(lambda _: made)}))
    monkeypatch.setattr(reconciling, "known_topics", lambda *_: (TOPIC,))
    monkeypatch.setattr(reconciling, "newest_columns", lambda *_: change())
    return made


def config() -> Config:
    return cast("Config", type("C", (), {"registry": type("R", (), {"dsn": ""}), "catalog": {}}))


def test_every_partition_ahead_is_named_and_so_are_missing_files(topic: Topic) -> None:
    (done,) = reconcile(config())
    assert (done.landed, done.waiting) == (1, 2)
    assert [type(error) for error in done.errors] == [PartitionAhead, PartitionAhead, ObjectMissing]
    assert [error.context.get("partition") for error in done.errors] == [1, 2, None]
    assert done.errors[2].context["files"] == [file.path for file in topic.gone[0].files]
    assert done.error is done.errors[0]


def test_machines_are_told_all_of_them(topic: Topic, capsys: pytest.CaptureFixture[str]) -> None:
    (done,) = reconcile(config())
    command._write(done)
    document = json.loads(capsys.readouterr().out)
    assert [error["kind"] for error in document["errors"]] == ["PartitionAhead", "PartitionAhead", "ObjectMissing"]
