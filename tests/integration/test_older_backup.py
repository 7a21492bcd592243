"""A registry older than the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.records.where import Where
from archiver.storage.journal import Journal
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase
from archiver.upkeep.refill.job import RefillJob
from catalog.errors import RegistryBehind
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.foreign_writes import delete_rows, rewrite, table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration

BACKUP = range(10)
LATER = range(10, 20)
AFTER = range(20, 30)
GONE = (12, 13)


@pytest.fixture
def restored(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    archive(stack, config, topic, BACKUP)
    dsn = load_config(config).registry.dsn
    backup = copied(stack, dsn)
    archive(stack, config, topic, LATER)
    config.write_text(config.read_text().replace(json.dumps(dsn), json.dumps(backup)))
    return config, topic


def copied(stack: Stack, dsn: str) -> str:
    name = unique("copy")
    with psycopg.connect(stack.postgres_dsn, autocommit=True) as connection:
        template = sql.Identifier(urlsplit(dsn).path.lstrip("/"))
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def archive(stack: Stack, config: Path, topic: str, numbers: range) -> None:
    stack.produce(topic, *({"value": b"%d" % number} for number in numbers))
    archive_once(config, topic)


def status(config: Path, topic: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)])
    (row,) = json.loads(done.stdout)["topics"]
    return dict(row)


def empty_journal(config: Path, topic: str) -> None:
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = (item for item in registry.topics.every() if item.topic == topic)
    journal = Journal.of(load_config(config))
    for item in journal.objects.list(f"{journal.root}/{row.table}"):
        delete_object(journal.objects, item.path)


def ends(config: Path, topic: str) -> list[tuple[int, int]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        return connection.execute(
            "SELECT start_offset, end_offset FROM files JOIN topics ON topics.id = files.topic_id"
            " WHERE topic = %s AND state = 'committed' ORDER BY 1",
            (topic,),
        ).fetchall()


@pytest.mark.parametrize("with_journal", [True, False])
@pytest.mark.parametrize("is_deleted_first", [True, False])
def test_deletions_in_between_are_reported(
    stack: Stack, restored: tuple[Path, str], *, with_journal: bool, is_deleted_first: bool
) -> None:
    config, topic = restored
    if not with_journal:
        empty_journal(config, topic)
    problem = status(config, topic)["problem"]
    assert (problem["kind"], "older backup" in problem["message"]) == ("RegistryBehind", True)
    stack.produce(topic, *({"value": b"%d" % number} for number in AFTER))
    if is_deleted_first:
        delete_rows(stack, config, topic, 0, GONE)
        (report,) = run(config, topic).topics
    else:
        assert run(config, topic).succeeded
        delete_rows(stack, config, topic, 0, GONE)
        (report,) = run(config, topic).topics
    assert type(report.error).__name__ == "RowsRemoved"
    assert report.error.context["missing"] == "partition 0 [12, 14) 2 rows"
    assert ends(config, topic) == [(0, 10), (10, 20), (20, 30)]
    assert [tuple(hole.values()) for hole in status(config, topic)["holes"]] == [(0, 12, 14, 2)]
    refilled = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert (refilled.succeeded, refilled.commit_id is not None) == (True, True)
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    assert run(config, topic).succeeded


def test_refill_reports_them_before_the_next_archive(stack: Stack, restored: tuple[Path, str]) -> None:
    config, topic = restored
    delete_rows(stack, config, topic, 0, GONE)
    refilled = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert [(range_.hole.start_offset, range_.hole.end_offset, range_.rows) for range_ in refilled.mended] == [
        (12, 14, 2)
    ]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_ranges_that_nothing_names_stop_the_topic(stack: Stack, restored: tuple[Path, str]) -> None:
    config, topic = restored
    empty_journal(config, topic)
    rewrite(stack, config, topic)
    table = table_of(stack, config, topic)
    table.maintenance.expire_snapshots().by_ids(
        [
            snapshot.snapshot_id
            for snapshot in table.metadata.snapshots
            if snapshot.snapshot_id != table.metadata.current_snapshot_id
        ]
    ).commit()
    for _ in range(2):
        (report,) = run(config, topic).topics
        assert isinstance(report.error, RegistryBehind)
        assert report.error.context["registry_end"] == 10
        assert "Restore a newer backup" in str(report.error)
    assert ends(config, topic) == [(0, 10)]


def test_a_dry_run_adds_nothing(restored: tuple[Path, str]) -> None:
    config, topic = restored
    with pytest.raises(RegistryBehind, match="A dry run writes nothing"):
        RefillJob(load_config(config), topic, dry_run=True, engine=InlineEngine()).run()
    assert ends(config, topic) == [(0, 10)]


def test_ranges_compacted_since_the_backup_stop_the_topic(stack: Stack) -> None:
    """The journal's range [0, 20) overlaps the registry's [0, 10): its rest would be skipped."""
    topic = stack.topic()
    config = stack.config({topic: {}})
    archive(stack, config, topic, BACKUP)
    dsn = load_config(config).registry.dsn
    backup = copied(stack, dsn)
    archive(stack, config, topic, LATER)
    (compacted,) = Compact(load_config(config), wish=Wish(min_files=2), engine=InlineEngine).run().topics
    assert compacted.commits
    archive(stack, config, topic, AFTER)
    config.write_text(config.read_text().replace(json.dumps(dsn), json.dumps(backup)))
    for _ in range(2):
        (report,) = run(config, topic).topics
        assert isinstance(report.error, RegistryBehind)
        assert "with other borders than the registry" in str(report.error)
    assert ends(config, topic) == [(0, 10)]


def test_records_erased_since_the_backup(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    archive(stack, config, topic, BACKUP)
    dsn = load_config(config).registry.dsn
    backup = copied(stack, dsn)
    erased = Erase(load_config(config), topic, Where.parse("offset = 5"), engine=InlineEngine()).run()
    assert erased.rows == 1
    config.write_text(config.read_text().replace(json.dumps(dsn), json.dumps(backup)))
    rewrite(stack, config, topic)  # by another engine: so the last check doesn't hold any more
    (report,) = run(config, topic).topics
    assert isinstance(report.error, RegistryBehind), report.error
    assert "may have been erased or retired since" in str(report.error)
    assert report.error.context["rewritten_by"] == ["erase"]
    assert status(config, topic)["problem"]["kind"] == "RegistryBehind"
    RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert [record.offset for record in from_archive(config, topic, 1)] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
