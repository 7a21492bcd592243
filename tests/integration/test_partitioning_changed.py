"""Partitioning that another engine changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reconcile import reconcile
from catalog.errors import PartitioningChanged
from catalog.registry import Registry
from tests.fault.soak.told import problems
from tests.support.archive.job_runs import archive_once, places, read, run, without_registry
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

HOUR = 3_600_000
START = 1_767_225_600_000
"""2026-01-01"""
CHANGES: tuple[Callable[[UpdateSpec], object], ...] = (
    lambda update: update.remove_field("ingest_day").add_field("kafka.event_timestamp", DayTransform(), "event_day"),
    lambda update: update.rename_field("ingest_day", "of_others"),
    lambda update: update.remove_field("ingest_day"),
    lambda update: update.add_field("kafka.partition", IdentityTransform(), "p"),
    lambda update: (
        update.remove_field("ingest_day")
        .add_field("kafka.event_timestamp", HourTransform(), "event_hour")
        .add_field("kafka.offset", BucketTransform(4), "by offset")
    ),
)
"""Ways to change a partitioning, each of which needs other statements to be changed back."""


@pytest.fixture
def staged(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    produce(stack, topic, 0)
    archive_once(config)
    produce(stack, topic, 1)
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    return config, topic, load_config(config).topic(topic).table


def produce(stack: Stack, topic: str, turn: int) -> None:
    """Produce records some days before the batch's median: event and ingest days differ."""
    first = START + 3 * turn * 24 * HOUR
    times = [first + (number - 60 if number < 3 else number) * HOUR for number in range(12)]
    stack.produce(topic, *({"value": b"%d/%d" % (turn, n), "timestamp": time} for n, time in enumerate(times)))


def found(stack: Stack, table: str) -> int:
    rows = stack.catalog().load_table(table).scan().to_arrow().column("kafka").to_pylist()
    for name in ("event_timestamp", "ingest_timestamp"):
        for time in {row[name] for row in rows}:
            count = sum(row[name] == time for row in rows)
            text = time.isoformat()
            assert len(rows_of_pyiceberg(stack, table, f"kafka.{name} = '{text}'")) == count, (name, text)
    last = max(row["event_timestamp"] for row in rows).isoformat()
    assert len(rows_of_duckdb(stack, table, f"kafka.event_timestamp = TIMESTAMPTZ '{last}'")) == 1
    assert len(rows_of_duckdb(stack, table)) == len(rows)
    return len(rows)


def test_foreign_source_is_refused_until_changed_back_as_advised(stack: Stack, staged: tuple[Path, str, str]) -> None:
    config, topic, table = staged
    with stack.catalog().load_table(table).update_spec() as update:
        update.remove_field("ingest_day").add_field("kafka.event_timestamp", DayTransform(), "event_day")
    produce(stack, topic, 2)
    (report,) = run(config).topics
    assert isinstance(report.error, PartitioningChanged)
    assert "day(12)" in str(report.error)
    assert [problem["kind"] for problem in problems(config, topic)] == ["PartitioningChanged"]
    with Registry(load_config(config).registry.dsn) as registry:
        assert len(registry.files.pending(registry.topics.every()[0])) == 1
    (done,) = reconcile(load_config(config))  # what was staged for ingest days goes to ingest days
    assert (done.landed, done.error) == (1, None)
    assert found(stack, table) == 24
    for change in ("DROP PARTITION FIELD `event_day`", "ADD PARTITION FIELD days(ingest_timestamp) AS `ingest_day`"):
        assert f"ALTER TABLE {table} {change}" in str(report.error)
    with stack.catalog().load_table(table).update_spec() as update:
        update.remove_field("event_day").add_field("ingest_timestamp", DayTransform(), "ingest_day")
    archive_once(config)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(36)]
    assert found(stack, table) == 36


def test_statements_of_the_error_restore_partitioning_in_spark(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    table = load_config(config).topic(topic).table
    produce(stack, topic, 0)
    archive_once(config)
    engine.session.sql("USE lake")
    try:
        for turn, change in enumerate(CHANGES, start=1):
            with stack.catalog().load_table(table).update_spec() as update:
                change(update)
            produce(stack, topic, turn)
            (report,) = run(config).topics
            assert isinstance(report.error, PartitioningChanged)
            statements = report.error.message.partition("for example: ")[2].split("; ")
            for statement in statements:
                assert statement.startswith(f"ALTER TABLE {table} ")
                engine.session.sql(statement)
            archive_once(config)
            fields = stack.catalog().load_table(table).spec().fields
            assert [(field.name, str(field.transform)) for field in fields] == [("ingest_day", "day")], statements
    finally:
        engine.session.sql("USE spark_catalog")
    assert places(read(stack, config, topic)) == [(0, n) for n in range(12 * (len(CHANGES) + 1))]


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_files_staged_in_days_keep_days_in_an_hourly_table(
    stack: Stack, staged: tuple[Path, str, str], *, is_rebuilt: bool
) -> None:
    config, topic, table = staged
    with stack.catalog().load_table(table).update_spec() as update:
        update.remove_field("ingest_day").add_field("kafka.ingest_timestamp", HourTransform(), "ingest_hour")
    if is_rebuilt:
        config = without_registry(stack, config, with_journal=True)
        (done,) = Rebuild(load_config(config), [topic]).run()
        assert done.staged == 1
    config.write_text(config.read_text().replace(f'[topics."{topic}"]', f'[topics."{topic}"]\npartition_by = "hour"'))
    assert load_config(config).topic(topic).partition_by == "hour"
    produce(stack, topic, 2)
    archive_once(config)
    specs = stack.catalog().load_table(table).specs()
    files = stack.catalog().load_table(table).inspect.files().to_pylist()
    units = [str(specs[file["spec_id"]].fields[0].transform) for file in files]
    # A rebuilt registry doesn't know what the file was staged for: its rows fit into one hour.
    assert sorted(units) == (["day", "hour", "hour"] if is_rebuilt else ["day", "day", "hour"])
    assert found(stack, table) == 36
