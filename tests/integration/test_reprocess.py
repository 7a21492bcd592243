"""`archiver reprocess` of rows of a wrong schema."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from archiver.config import load_config
from archiver.engine.runner import Engine, TaskOutcome
from archiver.engine.spark import SparkEngine
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import KeptFor
from archiver.upkeep.reprocess import job
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.report import ReprocessReport
from archiver.upkeep.reprocess.row_filter import RowFilter
from catalog.registry import KnownFiles, Registry
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, archived_wrongly, produce
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

EVENT: Any = message_factory.GetMessageClass(descriptor_of(RIGHT, "t.Event"))


def reprocess(config: Path, topic: str, wanted: RowFilter | None = None, **options: Any) -> ReprocessReport:
    report = Reprocess(load_config(config), topic, wanted, engine=InlineEngine(), **options).run()
    assert report.succeeded, report.failures
    return report


def table_of(stack: Stack, config: Path, topic: str) -> Any:
    return stack.catalog().load_table(load_config(config).topic(topic).table)


def rows_of(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    rows = table_of(stack, config, topic).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))


def states(config: Path) -> dict[str, tuple[int, int]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        counted = connection.execute("SELECT state, count(*), sum(rows)::int FROM files GROUP BY state").fetchall()
    return {state: (count, rows) for state, count, rows in counted}


def was_bad(part: dict[str, Any] | None) -> bool:
    return bool(part and part["__err__"])


def reads(sent: bytes | None) -> bool:
    try:
        return sent is not None and EVENT.FromString(sent) is not None
    except DecodeError:
        return False


def cells(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {name.partition("_deleted_")[0]: cells(cell) for name, cell in value.items() if cell is not None}
        return {name: cell for name, cell in plain.items() if cell not in ([], {})}
    return value


def assert_shows(part: dict[str, Any], sent: bytes, *, keeps_raw: bool) -> None:
    expected = EVENT.FromString(sent)
    assert part["__err__"] is None
    assert (part["id"], part["name"], part["counts"]) == (expected.id, expected.name, list(expected.counts))
    assert dict(part["more"]) == dict(expected.more)
    assert (part["who"] or {}).get("text") == (expected.who.text if expected.HasField("who") else None)
    is_exact = expected.SerializeToString(deterministic=True) == sent
    assert part["__raw__"] == (sent if keeps_raw or not is_exact else None)


def test_a_mended_schema_reaches_the_rows(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    before = rows_of(stack, config, topic)
    wrong = [row for row in before if (row["val"] or {}).get("__err__")]
    assert len(wrong) > 40
    proto.write_text(RIGHT)
    offsets = table_of(stack, config, topic).properties["archiver.offsets"]

    report = reprocess(config, topic)

    after = rows_of(stack, config, topic)
    assert report.files == 2 * PARTITIONS
    assert report.commit_id is not None
    assert table_of(stack, config, topic).properties["archiver.offsets"] == offsets
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert from_archive(config, topic, PARTITIONS) == kafka
    for old, row, record in zip(before, after, kafka, strict=True):
        assert {**row["kafka"], "schema_version": 0} == {**old["kafka"], "schema_version": 0}
        assert row["headers"] == old["headers"]
        mended = any(was_bad(old[part]) and reads(sent) for part, sent in (("key", record.key), ("val", record.value)))
        assert row["kafka"]["schema_version"] == 1 + mended
        assert row["key"] is None or row["key"]["__raw__"] == record.key
        for part, sent in (("key", record.key), ("val", record.value)):
            if sent is None:
                assert row[part] is None
            elif not reads(sent):
                assert row[part]["__err__"] == old[part]["__err__"]
                assert row[part]["__raw__"] == sent
            elif mended:
                assert_shows(row[part], sent, keeps_raw=part == "key")
            else:
                assert cells(row[part]) == cells(old[part])
    left = [row for row in after if (row["val"] or {}).get("__err__")]
    assert {row["val"]["__raw__"] for row in left} == {b"\xff\xff"}
    assert states(config) == {"committed": (4, len(kafka)), "replaced": (4, len(kafka))}
    table = load_config(config).topic(topic).table
    rows = rows_of_pyiceberg(stack, table)
    assert rows_of_spark(engine, table) == rows
    assert rows_of_duckdb(stack, table) == rows


def test_a_dry_run_says_what_would_be_done_and_does_nothing(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    table = table_of(stack, config, topic)
    plan = reprocess(config, topic, dry_run=True)
    assert (plan.commit_id, plan.files) == (None, 2 * PARTITIONS)
    assert plan.found["val", "truncated"] > plan.mended["val", "truncated"] == 0
    assert table_of(stack, config, topic).metadata == table.metadata
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM schema_versions").fetchone() == (1,)
    done = reprocess(config, topic)
    assert (done.found, done.mended) == (plan.found, plan.mended)
    again = reprocess(config, topic)
    assert again.commit_id is None
    assert again.found == done.found - done.mended


def test_a_dry_run_of_little_work_starts_no_spark(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)

    def started(*_: object, **__: object) -> Engine:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("archiver.engine.choice.start_spark", started)
    plan = Reprocess(load_config(config), topic, dry_run=True).run()
    assert (plan.succeeded, plan.files) == (True, 2 * PARTITIONS)
    assert plan.mended == reprocess(config, topic, dry_run=True).mended
    with pytest.raises(AssertionError, match="Spark was started"):
        Reprocess(load_config(config), topic).run()
    monkeypatch.setattr(job, "HERE_BYTES", 10)
    with pytest.raises(AssertionError, match="Spark was started"):
        Reprocess(load_config(config), topic, dry_run=True).run()


@pytest.mark.slow
def test_only_what_is_asked_for_changes(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    assert reprocess(config, topic, RowFilter(codes=frozenset({"truncated"}))).commit_id is None
    before = rows_of(stack, config, topic)
    selected = RowFilter(partitions=frozenset({1}), start_offset=2, end_offset=6)
    assert reprocess(config, topic, selected).files == 1
    for old, row in zip(before, rows_of(stack, config, topic), strict=True):
        position = row["kafka"]
        if position["partition"] != 1 or not 2 <= position["offset"] < 6:
            assert position["schema_version"] == 1
            assert was_bad(row["val"]) == was_bad(old["val"])
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


@pytest.mark.slow
def test_without_a_better_schema_nothing_is_written(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path)
    snapshot = table_of(stack, config, topic).current_snapshot()
    report = reprocess(config, topic)
    assert report.found
    assert not report.mended
    assert table_of(stack, config, topic).current_snapshot() == snapshot


@pytest.mark.slow
def test_files_that_spark_has_merged(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    """Several partitions in one file, without the archiver's footer: the registry has the mappings."""
    config, topic, proto = archived_wrongly(stack, tmp_path)
    table = load_config(config).topic(topic).table
    merge = f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    engine.session.sql(merge).collect()
    assert len(files_of(stack, config, topic)) == 2  # one a day
    proto.write_text(RIGHT)
    assert reprocess(config, topic).files == 2
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert from_archive(config, topic, PARTITIONS) == kafka
    rows = rows_of_pyiceberg(stack, table)
    assert rows_of_spark(engine, table) == rows
    assert rows_of_duckdb(stack, table) == rows
    engine.session.sql(merge).collect()
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


@pytest.mark.slow
def test_rows_that_others_deleted_stay_deleted(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    table = load_config(config).topic(topic).table
    engine.session.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')").collect()
    engine.session.sql(f"DELETE FROM lake.{table} WHERE kafka.offset % 5 = 2").collect()
    proto.write_text(RIGHT)
    assert reprocess(config, topic).files == 2 * PARTITIONS
    left = [record for record in from_kafka(stack, topic, PARTITIONS) if record.offset % 5 != 2]
    assert from_archive(config, topic, PARTITIONS) == left
    assert len(rows_of_spark(engine, table)) == len(left)


def test_another_archiver_appends_meanwhile(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)

    def append() -> None:
        produce(stack, topic, 2)
        archive_once(config, topic, engine=InlineEngine())

    report = reprocess_while(config, topic, append)
    assert report.files == 2 * PARTITIONS
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    assert not reprocess(config, topic).mended


@pytest.mark.slow
def test_spark_rewrites_the_files_meanwhile(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    table = load_config(config).topic(topic).table
    proto.write_text(RIGHT)
    merge = f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    report = reprocess_while(config, topic, lambda: engine.session.sql(merge).collect())
    assert report.files == 2
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    assert not reprocess(config, topic).mended
    with Registry(load_config(config).registry.dsn) as registry:
        assert registry.rewrites.unfinished(registry.topics.every()[0]) == ()


def test_a_run_that_is_older_than_orphans_keeps_its_uploads(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    days = 4 * 86_400.0
    kept: list[int] = []

    def remove_orphans() -> None:
        with psycopg.connect(load_config(config).registry.dsn) as connection:
            connection.execute(
                "UPDATE metadata SET updated = now() + make_interval(secs => %s) WHERE key = 'upload'", (days - 3600,)
            )
        orphans = Orphans(
            load_config(config),
            [topic],
            deletes=True,
            clock=lambda: time.time() + days,
        )
        (result,) = orphans.run().topics
        assert result.error is None
        kept.append(result.kept[KeptFor.AGE])

    report = reprocess_while(config, topic, remove_orphans)
    assert kept[0] >= report.files > 0
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        assert connection.execute("SELECT name FROM metadata WHERE key = 'upload'").fetchall() == []


def test_uploads_of_a_dead_run_without_claim_are_orphans(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KnownFiles, "forget", lambda *_: None)  # as a kill would leave it
        with pytest.raises(KeyboardInterrupt):
            reprocess_while(config, topic, die)
    late = Orphans(
        load_config(config),
        [topic],
        clock=lambda: time.time() + 4 * 86_400.0,
    )
    assert len(late.run().topics[0].orphans) > 0


def reprocess_while(config: Path, topic: str, meanwhile: Callable[[], object]) -> ReprocessReport:
    engine = Interrupted(meanwhile)
    report = Reprocess(load_config(config), topic, engine=engine).run()
    assert report.succeeded, report.failures
    return report


class Interrupted(InlineEngine):
    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile: Callable[[], object] | None = meanwhile

    def run_tasks(self, tasks: Sequence[Any], run: Callable[[Any], Any]) -> Iterator[TaskOutcome[Any]]:
        yield from super().run_tasks(tasks, run)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()


def files_of(stack: Stack, config: Path, topic: str) -> list[str]:
    files = table_of(stack, config, topic).inspect.data_files()
    return list(files.column("file_path").to_pylist())
