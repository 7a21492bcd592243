"""Staged files missing from the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import DataLoss, ObjectMissing, StorageUnavailable
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.storage.objects import ObjectStore
from archiver.upkeep.reconcile import reconcile
from catalog.model import FileState, TranslatedRange
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, numbered, places, read, run
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object
from tests.support.storage.lossy_objects import LossyStore, ObjectFault, lossy_store

pytestmark = pytest.mark.integration

ALWAYS = 1 << 30


@pytest.fixture
def proxy() -> Iterator[LossyStore]:
    with lossy_store() as store:
        yield store


def staged(stack: Stack, monkeypatch: pytest.MonkeyPatch, *, committed: int = 5, waiting: int = 5) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    if committed:
        stack.produce(topic, *numbered(range(committed)))
        archive_once(config)
    stack.produce(topic, *numbered(range(committed, committed + waiting)))
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    return config, topic


def pending(config: Path) -> tuple[TranslatedRange, ...]:
    with Registry(load_config(config).registry.dsn) as registry:
        return registry.files.pending(registry.topics.every()[0])


def states(config: Path) -> dict[FileState, int]:
    with Registry(load_config(config).registry.dsn) as registry:
        return {
            state: count.ranges
            for state, count in registry.files.counts(registry.topics.every()[0]).items()
            if count.ranges
        }


def path_of(one: TranslatedRange) -> str:
    assert one.file is not None
    return one.file.path


def take_away(config: Path) -> tuple[ObjectStore, str, bytes]:
    (range_,) = pending(config)
    store = ObjectStore.of(load_config(config).catalog)
    data = store.read(path_of(range_))
    delete_object(store, path_of(range_))
    return store, path_of(range_), data


@pytest.mark.parametrize("fault", [ObjectFault.NO_SUCH_KEY, ObjectFault.NO_SUCH_BUCKET])
@pytest.mark.parametrize("committed", [0, 5])
def test_a_store_without_the_table_gives_up_nothing(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, proxy: LossyStore, fault: ObjectFault, committed: int
) -> None:
    config, topic = staged(stack, monkeypatch, committed=committed)
    before = pending(config)
    elsewhere = config.with_name("elsewhere.toml")
    section = f'[catalog]\n"s3.proxy-uri" = {json.dumps(proxy.uri)}'
    elsewhere.write_text(config.read_text().replace("[catalog]", section))
    proxy.arm(fault, times=ALWAYS)
    for report in (run(elsewhere).topics, reconcile(load_config(elsewhere))):
        (done,) = report
        assert isinstance(done.error, StorageUnavailable), done
        assert done.error.context["file"] == path_of(before[0])
        assert pending(config) == before
    assert proxy.struck > 2
    proxy.calm()
    assert archive_once(elsewhere).records == 5
    assert places(read(stack, config, topic)) == [(0, n) for n in range(committed + 5)]
    assert FileState.REJECTED not in states(config)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_file_that_comes_back_is_committed(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_cut: bool
) -> None:
    config, topic = staged(stack, monkeypatch)
    store, path, data = take_away(config)
    if is_cut:
        store.write(path, data[:-1])
    for _ in range(2):
        (done,) = reconcile(load_config(config))
        assert isinstance(done.error, ObjectMissing)
        assert done.error.context["files"] == [path]
        assert states(config) == {FileState.COMMITTED: 1, FileState.REJECTED: 1}
    assert path in caplog.text
    store.write(path, data)
    (done,) = reconcile(load_config(config))
    assert (done.landed, done.rows, done.error) == (1, 5, None)
    assert archive_once(config).records == 0
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)]
    assert states(config) == {FileState.COMMITTED: 2}


def test_a_file_that_comes_back_too_late_stays_out(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = staged(stack, monkeypatch)
    store, path, data = take_away(config)
    stack.produce(topic, *numbered(range(10, 12)))
    assert archive_once(config).records == 7
    store.write(path, data)
    for _ in range(2):
        assert archive_once(config).records == 0
    assert places(read(stack, config, topic)) == [(0, n) for n in range(12)]
    assert states(config) == {FileState.COMMITTED: 2, FileState.REJECTED: 1}


@pytest.mark.parametrize("committed", [0, 5])
def test_file_lost_by_store_and_kafka_is_named(stack: Stack, monkeypatch: pytest.MonkeyPatch, committed: int) -> None:
    config, topic = staged(stack, monkeypatch, committed=committed)
    store, path, data = take_away(config)
    stack.produce(topic, *numbered(range(committed + 5, committed + 8)))
    stack.admin.delete_records([TopicPartition(topic, 0, committed + 6)])[TopicPartition(topic, 0)].result(30)
    for _ in range(2):
        ((partition, error),) = run(config).topics[0].failures
        assert partition == 0
        assert isinstance(error, DataLoss)
        assert error.context["lost"] == f"[{committed}, {committed + 6})"
        assert error.context["files"] == [path]
    shown = CliRunner().invoke(app, ["status", topic, "--no-json", "--config", str(config)])
    assert shown.exit_code == 1
    assert path.rpartition("/")[2] in shown.output.replace("\n", "")
    store.write(path, data)
    again = run(config)  # the file is in the table now; one offset is lost all the same
    assert again.topics[0].failures[0][1].context["lost"] == f"[{committed + 5}, {committed + 6})"
    assert places(read(stack, config, topic)) == [(0, n) for n in range(committed + 5)]


def test_accepted_gap_begins_at_the_missing_files(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = staged(stack, monkeypatch, committed=0)
    store, path, data = take_away(config)
    stack.produce(topic, *numbered(range(5, 8)))
    stack.admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0)].result(30)
    assert not run(config).succeeded
    report = ArchiveJob(load_config(config), accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert [
        (partition.from_offset, partition.to_offset, partition.lost_offsets)
        for partition in report.topics[0].partitions
    ] == [(0, 8, 6)]
    store.write(path, data)
    assert archive_once(config).records == 0
    assert places(read(stack, config, topic)) == [(0, 6), (0, 7)]


def test_what_was_given_up_before_it_could_come_back_comes_back(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = staged(stack, monkeypatch)
    store, path, data = take_away(config)
    reconcile(load_config(config))
    with psycopg.connect(load_config(config).registry.dsn) as connection:  # as a registry of before has it
        connection.execute("ALTER TABLE files DROP COLUMN missing")
        connection.execute("DELETE FROM migrations WHERE name LIKE '%missing_objects'")
    store.write(path, data)
    (done,) = reconcile(load_config(config))
    assert (done.landed, done.error) == (1, None)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)]
