"""The source column of a partitioning."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import GreaterThanOrEqual, LessThan
from pyiceberg.transforms import DayTransform

from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate
from archiver.upkeep.reprocess.job import Reprocess
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, read, run, without_registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import DAY, PARTITIONS, RIGHT, START, archived_wrongly, produce
from tests.support.catalog.foreign_writes import set_main, table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


def unsaid(config: Path) -> Path:
    lines = config.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith('"partition_source"')]
    assert len(kept) == len(lines) - 1
    path = config.with_name("unsaid.toml")
    path.write_text("".join(kept))
    return path


def source_column(stack: Stack, config: Path, topic: str) -> str:
    table = table_of(stack, config, topic)
    (field,) = table.spec().fields
    return str(table.schema().find_column_name(field.source_id))


def versions(config: Path, topic: str) -> list[int]:
    with Registry(load_config(config).registry.dsn) as registry:
        row = next(entry for entry in registry.topics.every() if entry.topic == topic)
        return [version.version for version in registry.ledger.load(row).versions]


def equal(stack: Stack, config: Path, topic: str) -> bool:
    kafka = from_kafka(stack, topic, PARTITIONS)
    return bool(kafka) and from_archive(config, topic, PARTITIONS) == kafka


def test_a_new_table_is_partitioned_by_a_column_at_the_top(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path)
    assert source_column(stack, config, topic) == "ingest_timestamp"
    rows: Any = read(stack, config, topic)
    flat = rows["ingest_timestamp"].to_pylist()
    assert flat == [entry["ingest_timestamp"] for entry in rows["kafka"].to_pylist()]
    assert None not in flat

    table = table_of(stack, config, topic)
    files = len(list(table.scan().plan_files()))
    since = datetime.fromtimestamp((START + DAY // 2) / 1000, UTC).isoformat()
    for condition in (GreaterThanOrEqual("ingest_timestamp", since), LessThan("ingest_timestamp", since)):
        assert len(list(table.scan(row_filter=condition).plan_files())) == files // 2


@pytest.mark.parametrize("source", ["nested", "flat"])
def test_existing_table_keeps_its_unconfigured_source(stack: Stack, tmp_path: Path, source: str) -> None:
    said, topic, proto = archived_wrongly(stack, tmp_path, partition_source=source)
    column = source_column(stack, said, topic)
    assert column == ("ingest_timestamp" if source == "flat" else "kafka.ingest_timestamp")
    config = unsaid(said)
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    assert versions(config, topic) == [1]

    proto.write_text(RIGHT)
    assert Reprocess(load_config(config), topic, engine=InlineEngine()).run().commit_id
    produce(stack, topic, 3)
    archive_once(config, topic, engine=InlineEngine())
    assert versions(config, topic) == [1, 2]
    assert equal(stack, config, topic)

    snapshots = [snapshot.snapshot_id for snapshot in table_of(stack, config, topic).metadata.snapshots]
    set_main(stack, config, topic, snapshots[-2])
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE)
    assert equal(stack, config, topic)
    assert source_column(stack, config, topic) == column


@pytest.mark.parametrize("with_journal", [True, False])
@pytest.mark.parametrize("source", ["nested", "flat"])
def test_a_registry_made_again_keeps_the_tables_source(
    stack: Stack, tmp_path: Path, source: str, *, with_journal: bool
) -> None:
    said, topic, _ = archived_wrongly(stack, tmp_path, partition_source=source)
    fresh = without_registry(stack, unsaid(said), with_journal=with_journal)
    (done,) = Rebuild(load_config(fresh), [topic]).run()
    assert done.schema_versions == 1
    produce(stack, topic, 2)
    archive_once(fresh, topic, engine=InlineEngine())
    assert versions(fresh, topic) == [1]
    assert equal(stack, fresh, topic)


def test_table_partitioned_by_the_nested_column_keeps_both(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    with table_of(stack, config, topic).update_spec() as update:
        update.remove_field("ingest_day")
    with table_of(stack, config, topic).update_spec() as update:
        update.add_field("kafka.ingest_timestamp", DayTransform(), "ingest_day")
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    assert versions(config, topic) == [1]
    proto.write_text(RIGHT)
    assert Reprocess(load_config(config), topic, engine=InlineEngine()).run().commit_id
    rows: Any = read(stack, config, topic)
    assert rows["ingest_timestamp"].null_count == 0
    assert equal(stack, config, topic)


def test_another_source_than_the_tables_is_refused(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path, partition_source="nested")
    config.write_text(config.read_text().replace('"partition_source" = "nested"', '"partition_source" = "flat"'))
    error = run(config, topic).topics[0].error
    assert isinstance(error, ConfigError)
    assert "made with partition_source = 'nested'" in error.message
