"""Orphans deleted beside needed files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from archiver.cli.consent import TerminalConsent, deed
from archiver.config import load_config
from archiver.errors import ConfigError, ConsentMissing
from archiver.ingest.job import ArchiveJob
from archiver.storage.objects import ListedObject, ObjectStore
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import OrphanEvent, OrphanKind, OrphansFound, OrphansReport
from archiver.upkeep.reprocess.job import Reprocess
from catalog.errors import RegistryUnreachable
from catalog.iceberg.append import prepare
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS as MENDED_PARTITIONS
from tests.support.archive.wrong_schema import RIGHT, archived_wrongly
from tests.support.catalog.choice import EACH_CATALOG, stack_with
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive as archive_process
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object
from tests.support.terminal.consent_answers import Answers

pytestmark = pytest.mark.integration

PARTITIONS = 2
LATER = 2 * 3600.0
"""So much further on is the clock by which manifests are old enough."""


@pytest.fixture(scope="module", params=EACH_CATALOG)
def stack(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_with(request.param, stack, tmp_path_factory) as judged:
        yield judged


class Watcher:
    def __init__(self, on_found: Callable[[], None] = lambda: None) -> None:
        self._on_found = on_found

    def __call__(self, event: OrphanEvent) -> None:
        if isinstance(event, OrphansFound):
            self._on_found()


def run(config: Path, watcher: Watcher | None = None, *, deletes: bool = False, **options: Any) -> OrphansReport:
    return Orphans(load_config(config), (), watcher or Watcher(), deletes=deletes, **{"clock": _later, **options}).run()


def _later() -> float:
    return time.time() + LATER


@pytest.fixture
def killed(stack: Stack) -> Iterator[tuple[Path, str, list[str]]]:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}}, archive={"orphan_grace": "0s"})
    produce(stack, topic, 0)
    archive_once(config, topic, engine=InlineEngine())
    produce(stack, topic, 1)
    for _ in range(2):
        assert archive_process(config, "before_stage:kill").returncode == -9
    before = data_files(stack, config, topic)
    archive_once(config, topic, engine=InlineEngine())
    referenced = {task.file.file_path for task in table_of(stack, config, topic).scan().plan_files()}
    orphans = sorted(before - referenced)
    assert orphans
    yield config, topic, orphans
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def produce(stack: Stack, topic: str, turn: int) -> None:
    stack.produce(topic, *({"value": b"%d-%d" % (turn, n), "partition": n % PARTITIONS} for n in range(40)))


def table_of(stack: Stack, config: Path, topic: str) -> Table:
    return stack.catalog().load_table(load_config(config).topic(topic).table)


def objects_of(config: Path) -> ObjectStore:
    return ObjectStore.of(load_config(config).catalog)


def listed(stack: Stack, config: Path, topic: str) -> list[ListedObject]:
    files = objects_of(config).list(table_of(stack, config, topic).location())
    return [file for file in files if file.size and not file.path.endswith(".metadata.json")]


def data_files(stack: Stack, config: Path, topic: str) -> set[str]:
    return {file.path for file in listed(stack, config, topic) if file.path.endswith(".parquet")}


def test_what_a_kill_left_goes_and_nothing_else(stack: Stack, killed: tuple[Path, str, list[str]]) -> None:
    config, topic, orphans = killed
    objects = objects_of(config)
    folder = orphans[0].rpartition("/")[0]
    foreign = [f"{folder}/00000-0-{new_id().lower()}.parquet", f"{folder}/other-0-{0:020d}-{new_id().lower()}.parquet"]
    for path in foreign:
        objects.write(path, objects.read(orphans[0]))
    copied = f"{folder}/{topic}-0-{0:020d}-{new_id().lower()}.parquet"
    objects.write(copied, b"no file of ours at all")
    before = {file.path for file in listed(stack, config, topic)}

    shown = run(config)
    (result,) = shown.topics
    assert [orphan.path for orphan in result.orphans] == orphans
    assert {orphan.kind for orphan in result.orphans} == {OrphanKind.UNKNOWN}
    assert list(result.failures) == [copied]
    assert not shown.succeeded
    assert {file.path for file in listed(stack, config, topic)} == before

    answers = Answers(answer=False)
    declined = run(config, deletes=True, consent=TerminalConsent(answers)).topics[0]
    assert isinstance(declined.error, ConsentMissing)
    assert deed(answers.asked[0]).startswith(f"Delete {len(orphans)} file")
    assert set(answers.asked[0].facts) <= set(orphans)
    assert {file.path for file in listed(stack, config, topic)} == before

    assert [file.path for file in run(config, deletes=True).topics[0].deleted] == orphans
    assert {file.path for file in listed(stack, config, topic)} == before - set(orphans)
    delete_object(objects, copied)
    again = run(config, deletes=True)
    assert again.succeeded
    assert again.topics[0].orphans == ()


def test_young_files_stay(killed: tuple[Path, str, list[str]]) -> None:
    config, _, orphans = killed
    assert run(config, older_than=LATER + 1800).topics[0].orphans == ()
    assert len(run(config, older_than=LATER - 1800).topics[0].orphans) == len(orphans)
    config.write_text(config.read_text().replace('"orphan_grace" = "0s"', ""))
    with pytest.raises(ConfigError, match="older-than"):
        run(config, older_than=3600.0)
    assert run(config).older_than == 3 * 86_400


def test_files_that_wait_for_a_commit_stay(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, killed: tuple[Path, str, list[str]]
) -> None:
    """By the registry, or without one because the table hasn't reached their offsets."""
    config, topic, orphans = killed
    produce(stack, topic, 2)
    monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
    assert not ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once().succeeded
    monkeypatch.delenv("ARCHIVER_FAULT")
    staged = data_files(stack, config, topic)
    (result,) = run(config, deletes=True).topics
    assert [orphan.path for orphan in result.deleted] == orphans
    assert result.kept["registry"] == PARTITIONS
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        waiting = registry.files.pending(row)
        registry.files.reject(row, [range_.id for range_ in waiting], reason="as if nobody knew them")
    (result,) = run(config, deletes=True).topics
    assert result.kept["offsets"] == PARTITIONS
    assert not result.deleted
    assert data_files(stack, config, topic) == staged - set(orphans)
    archive_once(config, topic, engine=InlineEngine())
    (result,) = run(config, deletes=True).topics
    assert {orphan.kind for orphan in result.deleted} == {OrphanKind.REJECTED}
    assert {orphan.path for orphan in result.deleted} == {range_.file.path for range_ in waiting if range_.file}


def test_what_a_rival_takes_between_search_and_removal_survives(
    stack: Stack, killed: tuple[Path, str, list[str]]
) -> None:
    config, topic, orphans = killed
    assert len(orphans) >= 2
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry:
        (row,) = registry.topics.every()

        def stage_and_rewrite() -> None:
            info = DataFileInfo(path=orphans[0], size_bytes=1, rows=1)
            ahead = TranslatedRange(
                id=new_id(),
                topic=topic,
                partition=7,
                start_offset=0,
                end_offset=1,
                schema_version=1,
                leader_epoch=0,
                files=(info,),
                created_ms=0,
            )
            assert registry.files.stage(row, [ahead], table_offsets={}).accepted
            file = DataFileInfo(path=orphans[1], size_bytes=1, rows=1)
            group = RewriteGroup.of_file("s3://elsewhere/a.parquet", file)
            registry.rewrites.begin(row, Rewrite(commit_id=new_id(), reason="test", schema_version=1, groups=(group,)))

        (report,) = run(config, Watcher(stage_and_rewrite), deletes=True).topics
        assert [orphan.path for orphan in report.needed_again] == orphans[:2]
        assert [orphan.path for orphan in report.deleted] == orphans[2:]
        registry.files.reject(row, [range_.id for range_ in registry.files.pending(row)], reason="enough")
        for rewrite in registry.rewrites.unfinished(row):
            registry.rewrites.abandon(row, rewrite)
    table = table_of(stack, config, topic)
    before = table.current_snapshot()
    assert before is not None

    def append_and_roll_back() -> None:
        """The rows come twice, so the table is rolled back; a retained snapshot still has the files."""
        table.add_files(orphans[:2], check_duplicate_files=False)
        table.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()

    (report,) = run(config, Watcher(append_and_roll_back), deletes=True).topics
    assert [orphan.path for orphan in report.needed_again] == orphans[:2]
    assert run(config, deletes=True).topics[0].orphans == ()


def test_replaced_files_go_once_no_snapshot_or_tag_has_them(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    config.write_text(config.read_text().replace("[archive]", '[archive]\norphan_grace = "0s"'))
    first = data_files(stack, config, topic)
    table = table_of(stack, config, topic)
    tagged = table.current_snapshot()
    assert tagged is not None
    table.manage_snapshots().create_tag(tagged.snapshot_id, "audit").commit()
    proto.write_text(RIGHT)
    assert Reprocess(load_config(config), topic, engine=InlineEngine()).run().commit_id
    everything = {file.path for file in listed(stack, config, topic)}

    assert run(config, deletes=True).topics[0].orphans == ()
    table = table_of(stack, config, topic)
    table.manage_snapshots().remove_tag("audit").commit()
    table.maintenance.expire_snapshots().by_id(tagged.snapshot_id).commit()
    older = [snapshot.snapshot_id for snapshot in table_of(stack, config, topic).snapshots()][:-1]
    for snapshot_id in older:
        table_of(stack, config, topic).maintenance.expire_snapshots().by_id(snapshot_id).commit()
    (result,) = run(config, deletes=True).topics

    assert {file.path for file in result.deleted if file.kind is OrphanKind.REPLACED} == first
    manifests = {file.path for file in result.deleted if file.kind is OrphanKind.MANIFEST}
    assert manifests
    assert all(path.endswith(".avro") for path in manifests)
    assert {file.path for file in listed(stack, config, topic)} == everything - first - manifests
    assert from_archive(config, topic, MENDED_PARTITIONS) == from_kafka(stack, topic, MENDED_PARTITIONS)
    assert len(table_of(stack, config, topic).scan().to_arrow()) > 0


def test_without_postgres_nothing_happens(killed: tuple[Path, str, list[str]]) -> None:
    config, _, _ = killed
    dsn = load_config(config).registry.dsn
    away = config.with_name("away.toml")
    away.write_text(config.read_text().replace(json.dumps(dsn), '"postgresql://archiver@127.0.0.1:1/none"'))
    with pytest.raises(RegistryUnreachable):
        run(away, deletes=True)


def test_doubtful_commit_keeps_manifests_until_the_table_moves(
    stack: Stack, killed: tuple[Path, str, list[str]]
) -> None:
    """It could still land, though the registry has forgotten its file."""
    config, topic, orphans = killed
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry, TableCatalog(settings.catalog) as catalog:
        (row,) = registry.topics.every()
        table = catalog.require(row)
        end = table.offsets[0].next_offset
        doubtful = TranslatedRange(
            id=new_id(),
            topic=topic,
            partition=0,
            start_offset=end,
            end_offset=end + 1,
            schema_version=1,
            leader_epoch=0,
            files=(DataFileInfo(path=orphans[0], size_bytes=1, rows=1),),
            created_ms=0,
        )
        attempt = prepare(table, [doubtful], change=None, commit_id=new_id())
        assert len(attempt.written) >= 2

        (result,) = run(config, deletes=True).topics
        assert {file.path for file in result.deleted} == set(orphans[1:])
        assert set(attempt.written) <= {file.path for file in listed(stack, config, topic)}

        produce(stack, topic, 3)
        archive_once(config, topic, engine=InlineEngine())
        (result,) = run(config, deletes=True, clock=time.time).topics
        assert [file.path for file in result.deleted] == orphans[:1]
        assert result.kept["age"] >= len(attempt.written)
        (result,) = run(config, deletes=True).topics
        assert {file.path for file in result.deleted} == set(attempt.written)
