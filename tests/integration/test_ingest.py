"""The job from a real broker to a real table, read back by pyiceberg: nothing lost, nothing twice, failures named."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions
from google.protobuf.wrappers_pb2 import Int64Value

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.engine.spark import SparkEngine
from archiver.errors import ConfigError, DataLoss, ParseHalted, TopicBusy, UnknownTopic
from archiver.ingest.job import ArchiveJob, JobReport, SilentObserver
from archiver.ingest.plan import PlannedRange
from archiver.ingest.task_values import TaskResult
from archiver.storage.objects import ObjectStore
from catalog.errors import NotOurTable
from catalog.model import FileState, TopicRow, TranslatedRange
from catalog.registry import Registry
from tests.inline_engine import InlineEngine
from tests.integration.readers import from_kafka
from tests.stack import Stack, unique

pytestmark = pytest.mark.integration

DAY = 86_400_000
NEW_YEAR = 1_767_225_600_000  # 2026-01-01


def run(config: Path, *topics: str, engine: Engine | None = None) -> JobReport:
    return ArchiveJob(load_config(config), topics, engine=engine or InlineEngine()).run_once()


def run_well(config: Path, *topics: str) -> JobReport:
    report = run(config, *topics)
    assert report.succeeded, report
    return report


def read(stack: Stack, config: Path, topic: str) -> pa.Table:
    return stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow()


def places(table: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in table.column("kafka").to_pylist())


def values(table: pa.Table) -> list[bytes]:
    return sorted(row["__raw__"] for row in table.column("val").to_pylist())


def numbered(numbers: Sequence[int], partitions: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [{"value": b"%d" % number, "partition": number % partitions, **more} for number in numbers]


def topic_row(config: Path, registry: Registry) -> TopicRow:
    (topic,) = registry.topics()
    return topic


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark leaves those of collect() open
def test_a_topic_reaches_its_table_by_spark(stack: Stack) -> None:
    topic = stack.topic(3)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(3_000), 3))
    with SparkEngine.start({"master": "local[2]"}) as engine:
        report = run(config, topic, engine=engine)
    assert report.succeeded, report
    (done,) = report.topics
    assert [(each.from_offset, each.to_offset, each.records) for each in done.partitions] == [(0, 1_000, 1_000)] * 3
    assert (done.commits, done.files) == (1, 3)
    table = read(stack, config, topic)
    assert places(table) == [(partition, offset) for partition in range(3) for offset in range(1_000)]
    rows = {(row["kafka"]["partition"], row["kafka"]["offset"]): row["val"]["__raw__"] for row in table.to_pylist()}
    assert rows[1, 7] == b"22"
    assert list(load_config(config).archive.spool.iterdir()) == []


def test_a_second_run_adds_only_what_is_new(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    run_well(config)
    again = run_well(config)
    assert (again.waves, again.records) == (0, 0)
    stack.produce(topic, *numbered(range(4), 2))
    assert run_well(config).records == 4
    assert places(read(stack, config, topic)) == [(partition, offset) for partition in range(2) for offset in range(7)]


def test_files_end_at_days_and_at_their_target_size(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"target_file_size": "1MiB"}})
    noise = Random(1)
    for day in range(3):
        messages = [{"value": noise.randbytes(1_000), "timestamp": NEW_YEAR + day * DAY + n} for n in range(3_000)]
        stack.produce(topic, *messages, batch_num_messages=20)
    report = run_well(config)
    files = stack.catalog().load_table(load_config(config).topic(topic).table).inspect.files().to_pylist()
    assert sum(file["record_count"] for file in files) == report.records == 9_000
    days = [file["partition"]["ingest_day"] for file in files]
    assert {str(day) for day in days} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert len(files) >= 3


def test_latest_is_decided_once(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {"start_from": "latest"}})
    stack.produce(topic, *numbered(range(10), 2))
    assert run_well(config).records == 0
    stack.produce(topic, *numbered(range(10, 14), 2))
    stack.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    time.sleep(1)
    stack.produce(topic, {"value": b"added", "partition": 2})
    run_well(config)
    assert values(read(stack, config, topic)) == [b"10", b"11", b"12", b"13", b"added"]


def test_a_topic_can_start_at_a_time(stack: Stack) -> None:
    topic = stack.topic()
    start = datetime.fromtimestamp(NEW_YEAR / 1000, UTC).isoformat()
    config = stack.config({topic: {"start_from": start}})
    for number, moment in enumerate((NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 1)):
        stack.produce(topic, {"value": b"%d" % number, "timestamp": moment})
    run_well(config)
    assert values(read(stack, config, topic)) == [b"1", b"2"]


def test_what_retention_took_is_a_loss_of_that_partition_alone(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(20), 2))
    run_well(config)
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
    run_well(config)
    stack.produce(topic, *numbered(range(20, 40), 2))
    delete_before(stack, topic, 0, 15)
    report = ArchiveJob(load_config(config), accept_gaps=True, engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert [(each.from_offset, each.to_offset, each.lost_offsets) for each in report.topics[0].partitions] == [
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
    assert run_well(config).records == 0


def test_a_gap_up_to_an_empty_log_is_accepted_too(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10)))
    run_well(config)
    stack.produce(topic, *numbered(range(10, 20)))
    delete_before(stack, topic, 0, 20)
    assert not run(config).succeeded
    assert ArchiveJob(load_config(config), accept_gaps=True, engine=InlineEngine()).run_once().succeeded
    stack.produce(topic, *numbered(range(20, 23)))
    run_well(config)
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(20, 23))]


def delete_before(stack: Stack, topic: str, partition: int, offset: int) -> None:
    stack.admin.delete_records([TopicPartition(topic, partition, offset)])[TopicPartition(topic, partition)].result(30)


class AddsPartitions(SilentObserver):
    """Adds partitions, and records to them, when the first wave has been planned."""

    def __init__(self, stack: Stack, topic: str) -> None:
        self._stack = stack
        self._topic = topic

    def wave_planned(self, wave: int, ranges: Any) -> None:
        if wave == 1:
            self._stack.admin.create_partitions([NewPartitions(self._topic, 3)])[self._topic].result(30)
            time.sleep(1)
            self._stack.produce(self._topic, {"value": b"added", "partition": 2})


def test_partitions_that_are_added_are_picked_up_by_the_next_wave(stack: Stack) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    observer = AddsPartitions(stack, topic)
    report = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert (report.waves, report.records) == (2, 11)
    assert (2, 0) in places(read(stack, config, topic))


def test_a_range_of_aborted_records_alone_moves_the_offsets(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    producer = stack.producer(transactional_id=unique("aborter"))
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(20):
        producer.produce(topic, value=b"%d" % number)
    producer.flush(30)  # what is not sent is purged
    producer.abort_transaction(30)
    report = run_well(config)
    assert (report.records, report.topics[0].files, report.topics[0].commits) == (0, 0, 1)
    assert [(each.from_offset, each.to_offset) for each in report.topics[0].partitions] == [(0, 21)]
    assert run_well(config).waves == 0


TURNS = 12


def test_a_compacted_topic_is_archived_with_its_gaps_and_tombstones(stack: Stack) -> None:
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
    topic = stack.topic(1, settings | {"max.compaction.lag.ms": "300", "delete.retention.ms": "86400000"})
    config = stack.config({topic: {}})
    for turn in range(TURNS):
        messages = [{"key": b"k%d" % (number % 7), "value": b"%d/%d" % (turn, number)} for number in range(20)]
        stack.produce(topic, *messages, {"key": b"gone", "value": None})
        time.sleep(0.25)
    expected = _after_compaction(stack, topic)
    assert len(expected) < TURNS * 21, "nothing was compacted"
    run_well(config)
    rows = [(row["kafka"]["offset"], row["key"], row["val"]) for row in read(stack, config, topic).to_pylist()]
    assert sorted(offset for offset, _, _ in rows) == expected
    assert any(value is None for _, _, value in rows), "no tombstone"


def _after_compaction(stack: Stack, topic: str) -> list[int]:
    """The offsets that a consumer sees, once they are fewer and no longer change."""
    seen: list[list[int]] = []
    end = time.monotonic() + 90
    while time.monotonic() < end:
        seen.append([record.offset for record in from_kafka(stack, topic, 1)])
        if len(seen) > 2 and len(seen[-1]) < TURNS * 21 and seen[-1] == seen[-2] == seen[-3]:
            break
        time.sleep(1)
    return seen[-1]


def test_a_log_that_starts_inside_a_batch_is_read_from_there(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(100)))
    stack.admin.delete_records([TopicPartition(topic, 0, 37)])[TopicPartition(topic, 0)].result(30)
    run_well(config)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(37, 100)]


def test_a_topic_made_again_is_refused_and_others_go_on(stack: Stack) -> None:
    first, second = stack.topic(), stack.topic()
    config = stack.config({first: {}, second: {}})
    stack.produce(first, *numbered(range(5)))
    run_well(config)
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
    topic, other = stack.topic(), stack.topic()
    table = f"kafka.{unique('shared')}"
    config = stack.config({topic: {"table": table}})
    stack.produce(topic, *numbered(range(5)))
    run_well(config)
    stranger = stack.config({other: {"table": table}})
    stack.produce(other, *numbered(range(5)))
    ((_, error),) = run(stranger).topics[0].failures
    assert isinstance(error, NotOurTable)
    assert len(places(read(stack, config, topic))) == 5


def test_a_topic_that_is_not_there_is_named(stack: Stack) -> None:
    config = stack.config({"no_such_topic": {}})
    ((_, error),) = run(config).topics[0].failures
    assert isinstance(error, UnknownTopic)


def test_a_schema_that_can_not_be_read_stops_the_job_before_it_starts(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    value = {"format": "protobuf", "message": "a.B", "descriptors": str(tmp_path / "missing.binpb")}
    with pytest.raises(ConfigError, match=r"missing\.binpb") as error:
        run(stack.config({topic: {"value": value}}))
    assert error.value.context["topic"] == topic


def schema(folder: Path, fields: str) -> dict[str, str]:
    path = folder / "event.proto"
    path.write_text(f'syntax = "proto3"; package shop; message Event {{ {fields} }}')
    return {"format": "protobuf", "message": "shop.Event", "proto": str(path)}


def test_a_schema_change_comes_with_its_first_data(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, "int64 value = 1;")}})
    stack.produce(topic, {"value": Int64Value(value=7).SerializeToString()})
    run_well(config)
    name = load_config(config).topic(topic).table
    schema(tmp_path, "int64 amount = 1; string note = 2;")
    run_well(config)
    idle = stack.catalog().load_table(name)
    assert "val.note" not in idle.schema().column_names
    stack.produce(topic, {"value": Int64Value(value=8).SerializeToString() + b"\x12\x02hi"})
    run_well(config)
    table = stack.catalog().load_table(name)
    assert len(table.metadata.metadata_log) == len(idle.metadata.metadata_log) + 1
    rows = sorted((row["amount"], row["note"], row["__raw__"]) for row in read(stack, config, topic)["val"].to_pylist())
    assert rows == [(7, None, None), (8, "hi", None)]


def test_halting_stops_before_the_bad_record_and_goes_on_after_the_fix(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(2)
    bad = schema(tmp_path, "string value = 1;")
    config = stack.config({topic: {"value": bad, "on_parse_error": "halt"}})
    stack.produce(topic, {"value": b"\x0a\x01x", "partition": 0}, {"value": b"\x0a\x05x", "partition": 1})
    ((partition, error),) = run(config).topics[0].failures
    assert partition == 1
    assert isinstance(error, ParseHalted)
    assert places(read(stack, config, topic)) == [(0, 0)]
    config.write_text(config.read_text().replace('"halt"', '"pass_through"'))
    run_well(config)
    assert places(read(stack, config, topic)) == [(0, 0), (1, 0)]


class After(SilentObserver):
    """Does something when the first task has come back."""

    def __init__(self, act: Any) -> None:
        self._act = act
        self.reports: list[JobReport] = []

    def task_finished(self, topic: str, planned: PlannedRange, result: TaskResult) -> None:
        self._act()

    def committed(self, topic: str, ranges: Sequence[TranslatedRange]) -> None:
        pass

    def finished(self, report: JobReport) -> None:
        self.reports.append(report)


def test_a_stopped_run_commits_what_is_done_and_the_next_goes_on(stack: Stack) -> None:
    topic = stack.topic(6)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(600), 6))
    stop = threading.Event()

    def stop_and_wait() -> None:
        stop.set()
        time.sleep(1)

    report = ArchiveJob(load_config(config), observer=After(stop_and_wait), engine=InlineEngine()).run_once(stop)
    assert report.stopped
    assert report.succeeded
    assert 100 <= report.records < 600
    assert len(places(read(stack, config, topic))) == report.records
    run_well(config)
    assert places(read(stack, config, topic)) == [(partition, n) for partition in range(6) for n in range(100)]


def test_running_every_so_often_follows_the_topic(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"max_lag": "0s"}})
    stack.produce(topic, *numbered(range(5)))
    stop = threading.Event()
    observer = After(lambda: None)
    job = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine())
    thread = threading.Thread(target=job.run_every, args=(0.5, stop))
    thread.start()
    try:
        _eventually(lambda: sum(report.records for report in observer.reports) == 5)
        stack.produce(topic, *numbered(range(5, 9)))
        _eventually(lambda: sum(report.records for report in observer.reports) == 9)
    finally:
        stop.set()
        thread.join(30)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(9)]


def test_a_trickle_waits_for_company_but_not_for_long(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"max_lag": "4s"}})
    stack.produce(topic, *numbered(range(5)))
    stop = threading.Event()
    observer = After(lambda: None)
    job = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine())
    thread = threading.Thread(target=job.run_every, args=(0.5, stop))
    thread.start()
    try:
        _eventually(lambda: len(observer.reports) > 0)
        for number in range(5, 29):
            stack.produce(topic, *numbered([number], timestamp=NEW_YEAR - number * DAY))
            time.sleep(0.3)
        last = time.monotonic()
        _eventually(lambda: sum(report.records for report in observer.reports) == 29)
        assert time.monotonic() - last < 20.0
    finally:
        stop.set()
        thread.join(30)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(29)]
    commits = sum(report.topics[0].commits for report in observer.reports)
    assert 2 <= commits <= 5, "the trickle became a file for each look"
    assert len(observer.reports) > 2 * commits


def _eventually(holds: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_topic_that_another_archiver_holds_is_left_to_it(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    run_well(config)
    with Registry(load_config(config).registry.dsn) as registry, registry.lease(topic_row(config, registry)) as held:
        assert held
        ((_, error),) = run(config).topics[0].failures
    assert isinstance(error, TopicBusy)
    run_well(config)


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
        first, second = registry.pending(row)
        assert first.file is not None
        ObjectStore.of(settings.catalog).delete(first.file.path)
        run_well(config)
        counts = registry.counts(row)
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
    report = run_well(config)
    assert (report.waves, report.records) == (0, 5)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(5)]


def test_secrets_stay_out_of_the_report_and_the_registry(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    report = run_well(config)
    assert stack.secret_key not in repr(report)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute(
            "SELECT row_to_json(t)::text FROM topics t UNION SELECT row_to_json(f)::text FROM files f"
        )
        assert all(stack.secret_key not in row[0] for row in rows)
