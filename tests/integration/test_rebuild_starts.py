"""A registry rebuilt before the first commit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import ConfigError, DataLoss
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.upkeep.rebuild.job import Rebuild, RebuiltTopic
from archiver.upkeep.rebuild.unreferenced import Ends, LeftFor, continuing_ranges
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, numbered, places, read, run, without_registry
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration


def staged(stack: Stack, monkeypatch: pytest.MonkeyPatch, *, log_start: int = 0) -> tuple[Path, str, list[str]]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    if log_start:
        stack.admin.delete_records([TopicPartition(topic, 0, log_start)])[TopicPartition(topic, 0)].result(30)
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    stack.produce(topic, *numbered(range(5, 10)))
    away = config.with_name("away.toml")
    away.write_text(config.read_text().replace(json.dumps(load_config(config).catalog["uri"]), '"http://127.0.0.1:1"'))
    assert not run(away).succeeded
    with Registry(load_config(config).registry.dsn) as registry:
        ranges = registry.files.pending(registry.topics.every()[0])
    assert [(range_.start_offset, range_.end_offset) for range_ in ranges] == [(log_start, 5), (5, 10)]
    return config, topic, [range_.file.path for range_ in ranges if range_.file is not None]


def rebuild(config: Path, topic: str, **starts: dict[int, int]) -> RebuiltTopic:
    (done,) = Rebuild(load_config(config), [topic], **starts).run()
    return done


@pytest.mark.parametrize("with_journal", [True, False])
def test_what_lies_behind_a_head_that_never_arrived_waits_for_it(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, *, with_journal: bool
) -> None:
    config, topic, (head, rest) = staged(stack, monkeypatch)
    delete_object(ObjectStore.of(load_config(config).catalog), head)
    fresh = without_registry(stack, config, with_journal=with_journal)
    done = rebuild(fresh, topic)
    assert done.staged == 0
    assert [(file.path, file.start_offset, file.reason) for file in done.left] == [(rest, 5, LeftFor.START)]
    shown = CliRunner().invoke(app, ["registry", "rebuild", topic, "--no-json", "--config", str(fresh)])
    assert shown.exit_code == 0
    assert rest in shown.output
    archive_once(fresh)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)]


@pytest.mark.parametrize("with_journal", [True, False])
def test_offset_0_needs_no_proof(stack: Stack, monkeypatch: pytest.MonkeyPatch, *, with_journal: bool) -> None:
    config, topic, _ = staged(stack, monkeypatch)
    fresh = without_registry(stack, config, with_journal=with_journal)
    done = rebuild(fresh, topic)
    assert (done.staged, done.left) == (2, ())
    assert archive_once(fresh).waves == 0
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)]


def test_start_of_a_partition_is_from_journal_or_operator(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, paths = staged(stack, monkeypatch, log_start=3)
    # Kafka has none of them any more: the files are the only copy.
    stack.admin.delete_records([TopicPartition(topic, 0, 10)])[TopicPartition(topic, 0)].result(30)
    unknown = rebuild(without_registry(stack, config, with_journal=False), topic)
    assert (unknown.staged, [file.path for file in unknown.left]) == (0, paths)
    rebuilt = rebuild(without_registry(stack, config, with_journal=False), topic, starts={0: 3})
    assert (rebuilt.staged, rebuilt.left) == (2, ())
    fresh = without_registry(stack, config, with_journal=True)
    journaled = rebuild(fresh, topic)
    assert (journaled.staged, journaled.left) == (2, ())
    archive_once(fresh)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(3, 10)]


def test_a_log_that_was_cut_since_is_told_by_the_journal(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, paths = staged(stack, monkeypatch)
    for path in paths:
        delete_object(ObjectStore.of(load_config(config).catalog), path)
    fresh = without_registry(stack, config, with_journal=True)
    assert rebuild(fresh, topic).staged == 0
    stack.admin.delete_records([TopicPartition(topic, 0, 5)])[TopicPartition(topic, 0)].result(30)
    (report,) = run(fresh).topics
    ((_, error),) = report.failures
    assert isinstance(error, DataLoss), report


def test_files_of_a_topic_that_was_deleted_do_not_count(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, paths = staged(stack, monkeypatch)
    settings = load_config(config)
    with TableCatalog(settings.catalog) as catalog:
        table = catalog.adopt(settings.topic(topic).table, topic=topic)
    assert table is not None
    objects = ObjectStore.of(table.io.properties)
    again = ArchiveTable(topic=replace(table.topic, topic_id=uuid4()), iceberg=table.iceberg)
    versions, ends = frozenset({1}), Ends(reached={})
    assert len(continuing_ranges(table, objects, FORMATS, versions=versions, ends=ends).ranges) == 2
    continued = continuing_ranges(again, objects, FORMATS, versions=versions, ends=ends)
    assert continued.ranges == ()
    assert [(file.path, file.reason) for file in continued.left] == [(path, LeftFor.TOPIC) for path in paths]


def test_a_latest_start_outlives_the_registry(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"start_from": "latest"}})
    stack.produce(topic, *({"value": b"old"} for _ in range(4)))
    archive_once(config)
    stack.produce(topic, *({"value": b"new"} for _ in range(3)))
    fresh = without_registry(stack, config, with_journal=True)
    rebuild(fresh, topic)
    archive_once(fresh)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(4, 7)]


def test_starts_are_of_one_topic(stack: Stack) -> None:
    with pytest.raises(ConfigError, match="name that topic"):
        Rebuild(load_config(stack.config({})), starts={0: 3})
    shown = CliRunner().invoke(app, ["registry", "rebuild", "t", "--start", "x", "--config", str(stack.config({}))])
    assert shown.exit_code == 2


def test_of_several_known_starts_the_last_counts() -> None:
    ends = Ends(reached={7: 100}, starts={0: {3, 64}, 1: {64}})
    assert ends.at(0, {3, 64, 70}) == 64
    assert ends.at(0, {3, 70}) == 3
    assert ends.at(1, {3, 70}) is None
    assert ends.at(1, {0, 3}) == 0
    assert ends.at(2, {5}) is None
    assert ends.at(7, {200}) == 100
