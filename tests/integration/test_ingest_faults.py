"""Runs on bad logs, topics, tables or schemas."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import TopicPartition

from archiver.config import load_config
from archiver.errors import ConfigError, DataLoss, ParseHalted, TopicBusy, UnknownTopic
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.storage.objects import ObjectStore
from catalog.errors import NotOurTable
from catalog.model import FileState, TopicRow
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, numbered, places, read, run, schema
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration


def topic_row(config: Path, registry: Registry) -> TopicRow:
    (topic,) = registry.topics.every()
    return topic


def test_what_retention_took_is_a_loss_of_that_partition_alone(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(20), 2))
    archive_once(config)
    stack.produce(topic, *numbered(range(20, 40), 2))
    stack.admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0)].result(30)
    report = run(config)
    assert not report.succeeded
    ((partition, error),) = report.topics[0].failures
    assert partition == 0
    assert isinstance(error, DataLoss)
    assert error.context["lost"] == "[10, 15)"
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)] + [(1, n) for n in range(20)]


def test_a_gap_that_is_accepted_is_recorded_and_gone_past(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(20), 2))
    archive_once(config)
    stack.produce(topic, *numbered(range(20, 40), 2))
    delete_before(stack, topic, 0, 15)
    report = ArchiveJob(load_config(config), accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert [
        (partition.from_offset, partition.to_offset, partition.lost_offsets)
        for partition in report.topics[0].partitions
    ] == [
        (10, 20, 5),
        (10, 20, 0),
    ]
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(15, 20))] + [
        (1, n) for n in range(20)
    ]
    snapshots = stack.catalog().load_table(load_config(config).topic(topic).table).snapshots()
    assert [snapshot.summary["archiver.lost"] for snapshot in snapshots] == [None, '{"0":[10,15]}', None]
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute("SELECT partition, start_offset, end_offset, state FROM files WHERE lost").fetchall()
    assert rows == [(0, 10, 15, "committed")]
    assert archive_once(config).records == 0


def test_a_gap_up_to_an_empty_log_is_accepted_too(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    stack.produce(topic, *numbered(range(10, 20)))
    delete_before(stack, topic, 0, 20)
    assert not run(config).succeeded
    assert (
        ArchiveJob(load_config(config), accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once().succeeded
    )
    stack.produce(topic, *numbered(range(20, 23)))
    archive_once(config)
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(20, 23))]


@pytest.mark.parametrize("start_from", ["earliest", "latest"])
def test_loss_before_the_first_archived_record_is_reported(stack: Stack, start_from: str) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"start_from": start_from}})
    assert archive_once(config).records == 0
    stack.produce(topic, *numbered(range(20)))
    delete_before(stack, topic, 0, 15)
    for _ in range(2):
        ((_, error),) = run(config).topics[0].failures
        assert isinstance(error, DataLoss)
        assert error.context["lost"] == "[0, 15)"
    report = ArchiveJob(load_config(config), accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert [
        (partition.from_offset, partition.to_offset, partition.lost_offsets)
        for partition in report.topics[0].partitions
    ] == [(0, 20, 15)]
    assert places(read(stack, config, topic)) == [(0, n) for n in range(15, 20)]
    assert archive_once(config).records == 0


def delete_before(stack: Stack, topic: str, partition: int, offset: int) -> None:
    stack.admin.delete_records([TopicPartition(topic, partition, offset)])[TopicPartition(topic, partition)].result(30)


def test_a_topic_made_again_is_refused_and_others_go_on(stack: Stack) -> None:
    first, second = stack.topic(), stack.topic()
    config = stack.config({first: {}, second: {}})
    stack.produce(first, *numbered(range(5)))
    archive_once(config)
    stack.delete_topic(first)
    time.sleep(1)
    stack.topic(name=first)
    stack.produce(first, *numbered(range(3)))
    stack.produce(second, *numbered(range(7)))
    report = run(config)
    failures = {topic.topic: topic.failures for topic in report.topics}
    ((_, error),) = failures[first]
    assert isinstance(error, DataLoss)
    assert error.context["archived_topic_id"] != error.context["topic_id"]
    assert failures[second] == ()
    assert len(places(read(stack, config, second))) == 7
    assert len(places(read(stack, config, first))) == 5


def test_a_table_of_another_archive_is_left_alone(stack: Stack) -> None:
    topic, second = stack.topic(), stack.topic()
    table = f"kafka.{unique('shared')}"
    config = stack.config({topic: {"table": table}})
    stack.produce(topic, *numbered(range(5)))
    archive_once(config)
    stranger = stack.config({second: {"table": table}})
    stack.produce(second, *numbered(range(5)))
    ((_, error),) = run(stranger).topics[0].failures
    assert isinstance(error, NotOurTable)
    assert len(places(read(stack, config, topic))) == 5


def test_a_topic_that_is_not_there_is_named(stack: Stack) -> None:
    config = stack.config({"no_such_topic": {}})
    ((_, error),) = run(config).topics[0].failures
    assert isinstance(error, UnknownTopic)


def test_unreadable_schema_stops_the_job_before_it_starts(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    value = {"format": "protobuf", "message": "a.B", "descriptors": str(tmp_path / "missing.binpb")}
    with pytest.raises(ConfigError, match=r"missing\.binpb") as error:
        run(stack.config({topic: {"value": value}}))
    assert error.value.context["topic"] == topic


def test_halt_stops_before_the_bad_record_until_it_is_fixed(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(2)
    bad = schema(tmp_path, "string value = 1;")
    config = stack.config({topic: {"value": bad, "on_parse_error": "halt"}})
    stack.produce(topic, {"value": b"\x0a\x01x", "partition": 0}, {"value": b"\x0a\x05x", "partition": 1})
    ((partition, error),) = run(config).topics[0].failures
    assert partition == 1
    assert isinstance(error, ParseHalted)
    assert places(read(stack, config, topic)) == [(0, 0)]
    config.write_text(config.read_text().replace('"halt"', '"pass_through"'))
    archive_once(config)
    assert places(read(stack, config, topic)) == [(0, 0), (1, 0)]


def test_a_topic_that_another_archiver_holds_is_left_to_it(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    archive_once(config)
    with Registry(load_config(config).registry.dsn) as registry, registry.lease(topic_row(config, registry)) as lease:
        assert lease
        ((_, error),) = run(config).topics[0].failures
    assert isinstance(error, TopicBusy)
    archive_once(config)


def test_a_staged_file_that_vanished_is_archived_again(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
    assert not run(config).succeeded
    monkeypatch.delenv("ARCHIVER_FAULT")
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry:
        row = topic_row(config, registry)
        first, second = registry.files.pending(row)
        assert first.file is not None
        delete_object(ObjectStore.of(settings.catalog), first.file.path)
        archive_once(config)
        counts = registry.files.counts(row)
    assert places(read(stack, config, topic)) == [(partition, n) for partition in range(2) for n in range(5)]
    assert counts[FileState.REJECTED].ranges == 1
    assert counts[FileState.COMMITTED].ranges == 2
    paths = {file["file_path"] for file in stack.catalog().load_table(row.table).inspect.files().to_pylist()}
    assert second.file is not None
    assert second.file.path in paths


def test_what_was_left_staged_is_committed_though_nothing_is_new(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
    assert not run(config).succeeded
    assert len(read(stack, config, topic)) == 0
    monkeypatch.delenv("ARCHIVER_FAULT")
    report = archive_once(config)
    assert (report.waves, report.records) == (0, 5)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(5)]
