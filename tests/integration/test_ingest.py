"""The job from a broker to a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from google.protobuf.wrappers_pb2 import Int64Value

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.ingest.events import JobEvent, RunFinished, TaskFinished
from archiver.ingest.job import ArchiveJob, JobReport
from tests.support.archive.job_runs import archive_once, numbered, places, read, run, schema
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

DAY = 86_400_000
NEW_YEAR = 1_767_225_600_000  # 2026-01-01


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark leaves those of collect() open
def test_a_topic_reaches_its_table_by_spark(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(3)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(3_000), 3))
    report = run(config, topic, engine=engine)
    assert report.succeeded, report
    (done,) = report.topics
    assert [(partition.from_offset, partition.to_offset, partition.records) for partition in done.partitions] == [
        (0, 1_000, 1_000)
    ] * 3
    assert (done.commits, done.files) == (1, 3)
    table = read(stack, config, topic)
    assert places(table) == [(partition, offset) for partition in range(3) for offset in range(1_000)]
    rows = {(row["kafka"]["partition"], row["kafka"]["offset"]): row["val"]["__raw__"] for row in table.to_pylist()}
    assert rows[1, 7] == b"22"
    assert list(load_config(config).archive.spool.iterdir()) == []


def test_files_end_at_days_and_at_their_target_size(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"target_file_size": "1MiB"}})
    noise = Random(1)
    for day in range(3):
        messages = [{"value": noise.randbytes(1_000), "timestamp": NEW_YEAR + day * DAY + n} for n in range(3_000)]
        stack.produce(topic, *messages, batch_num_messages=20)
    report = archive_once(config)
    files = stack.catalog().load_table(load_config(config).topic(topic).table).inspect.files().to_pylist()
    assert sum(file["record_count"] for file in files) == report.records == 9_000
    days = [file["partition"]["ingest_day"] for file in files]
    assert {str(day) for day in days} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert len(files) >= 3


def test_a_schema_change_comes_with_its_first_data(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, "int64 value = 1;")}})
    stack.produce(topic, {"value": Int64Value(value=7).SerializeToString()})
    archive_once(config)
    name = load_config(config).topic(topic).table
    schema(tmp_path, "int64 amount = 1; string note = 2;")
    archive_once(config)
    idle = stack.catalog().load_table(name)
    assert "val.note" not in idle.schema().column_names
    stack.produce(topic, {"value": Int64Value(value=8).SerializeToString() + b"\x12\x02hi"})
    archive_once(config)
    table = stack.catalog().load_table(name)
    assert len(table.metadata.metadata_log) == len(idle.metadata.metadata_log) + 1
    rows = sorted((row["amount"], row["note"], row["__raw__"]) for row in read(stack, config, topic)["val"].to_pylist())
    assert rows == [(7, None, None), (8, "hi", None)]


def test_returned_schema_has_columns_at_once_and_names_later(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    older, newer = "int64 value = 1; int64 gone = 2;", "string value = 1;"
    config = stack.config({topic: {"value": schema(tmp_path, older), "keep_removed": False}})
    settings = load_config(config)

    def archive(body: str, value: bytes) -> set[str]:
        schema(tmp_path, body)
        stack.produce(topic, {"value": value})
        archive_once(config)
        names = stack.catalog().load_table(settings.topic(topic).table).schema().column_names
        return {name for name in names if name.startswith("val.") and "__" not in name}

    first = archive(older, b"\x08\x01\x10\x02")
    assert archive(newer, b"\x0a\x02hi") == {"val.value"}
    for number in (3, 4):
        # Nothing that anybody rewrites now can lose a cell of these rows.
        back = archive(older, b"\x08%c\x10%c" % (number, number))
        assert back == {"val.value", "val.gone", "val.value_deleted_101"}
        assert archive(newer, b"\x0a\x02ho") == back
    rows = read(stack, config, topic)["val"].to_pylist()
    assert sorted(row["gone"] for row in rows if row["gone"] is not None) == [2, 3, 4]

    for _ in range(2):
        assert archive(older, b"\x08\x05\x10\x05") == back
    with psycopg.connect(settings.registry.dsn) as connection:
        connection.execute("UPDATE topics SET returning_since = returning_since - interval '1 hour'")
    assert archive(older, b"\x08\x06\x10\x06") == first == {"val.value", "val.gone"}
    rows = read(stack, config, topic)["val"].to_pylist()
    assert sorted(row["value"] for row in rows if row["value"] is not None) == [1, 3, 4, 5, 5, 6]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


class After:
    def __init__(self, act: Any) -> None:
        self._act = act
        self.reports: list[JobReport] = []

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, TaskFinished):
            self._act()
        elif isinstance(event, RunFinished):
            self.reports.append(event.report)


def test_failing_observer_is_logged_once_and_stops_nothing(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(10), 2))
    calls: list[JobEvent] = []

    def fail(event: JobEvent) -> None:
        calls.append(event)
        raise BrokenPipeError

    assert ArchiveJob(load_config(config), observer=fail, engine=InlineEngine()).run_once().succeeded
    assert len(calls) == 1
    assert [record.levelname for record in caplog.records if record.name == "archiver.observer"] == ["ERROR"]
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)


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
    archive_once(config)
    assert places(read(stack, config, topic)) == [(partition, n) for partition in range(6) for n in range(100)]


def test_running_every_so_often_follows_the_topic(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"max_lag": "0s"}})
    stack.produce(topic, *numbered(range(5)))
    with _running(config) as reports:
        eventually(lambda: sum(report.records for report in reports) == 5)
        stack.produce(topic, *numbered(range(5, 9)))
        eventually(lambda: sum(report.records for report in reports) == 9)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(9)]


def test_a_trickle_waits_for_company_but_not_for_long(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"max_lag": "4s"}})
    stack.produce(topic, *numbered(range(5)))
    with _running(config) as reports:
        eventually(lambda: len(reports) > 0)
        for number in range(5, 29):
            stack.produce(topic, *numbered([number], timestamp=NEW_YEAR - number * DAY))
            time.sleep(0.3)
        last = time.monotonic()
        eventually(lambda: sum(report.records for report in reports) == 29)
        assert time.monotonic() - last < 20.0
    assert places(read(stack, config, topic)) == [(0, n) for n in range(29)]
    commits = sum(topic.commits for report in reports for topic in report.topics)
    assert 2 <= commits <= 5, "the trickle became a file for each look"
    assert len(reports) > 2 * commits


@contextmanager
def _running(config: Path) -> Iterator[Sequence[JobReport]]:
    stop, observer = threading.Event(), After(lambda: None)
    job = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine())
    thread = threading.Thread(target=job.run_every, args=(0.5, stop))
    thread.start()
    try:
        yield observer.reports
    finally:
        stop.set()
        thread.join(30)


def test_secrets_stay_out_of_the_report_and_the_registry(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *numbered(range(5)))
    report = archive_once(config)
    assert stack.secret_key not in repr(report)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute(
            "SELECT row_to_json(t)::text FROM topics t UNION SELECT row_to_json(f)::text FROM files f"
        )
        assert all(stack.secret_key not in row[0] for row in rows)
