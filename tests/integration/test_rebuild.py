"""The registry lost and rebuilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.errors import ConfigError, UpkeepError
from archiver.ingest.job import ArchiveJob
from archiver.storage.objects import ObjectStore
from archiver.upkeep.rebuild.job import Rebuild, RebuiltTopic
from archiver.upkeep.reprocess.job import Reprocess
from catalog.errors import RegistryBehind
from catalog.model import FileState, VersionRecord
from catalog.registry import Registry
from schema_mapping.columns.ledger import LedgerState
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, archived_wrongly, produce, values
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

NEWEST = RIGHT.replace("bytes name = 2;", "bytes title = 2; string note = 9;")


@pytest.fixture
def lost(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, Path]:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    assert Reprocess(load_config(config), topic, engine=InlineEngine()).run().commit_id
    proto.write_text(NEWEST)
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    produce(stack, topic, 3)
    monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
    assert not ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once().succeeded
    monkeypatch.delenv("ARCHIVER_FAULT")
    return config, topic, proto


def memory(config: Path, topic: str) -> tuple[LedgerState, tuple[VersionRecord, ...], dict[str, tuple[Any, ...]]]:
    with Registry(load_config(config).registry.dsn) as registry:
        row = next(entry for entry in registry.topics.every() if entry.topic == topic)
        ledger, history = registry.ledger.load(row), registry.ledger.history(row)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute(
            "SELECT path, partition, start_offset, end_offset, schema_version, rows, size_bytes, digest"
            " FROM files WHERE state = 'committed'"
        ).fetchall()
    return ledger, history, {path: tuple(rest) for path, *rest in rows}


def rebuild(config: Path, topic: str) -> RebuiltTopic:
    (done,) = Rebuild(load_config(config), [topic]).run()
    return done


@pytest.mark.parametrize("with_journal", [True, False])
def test_archiving_goes_on_with_a_registry_made_again(
    stack: Stack, lost: tuple[Path, str, Path], *, with_journal: bool
) -> None:
    config, topic, _ = lost
    ledger, history, files = memory(config, topic)
    fresh = without_registry(stack, config, with_journal=with_journal)
    refused = ArchiveJob(load_config(fresh), [topic], engine=InlineEngine()).run_once()
    assert isinstance(refused.topics[0].error, RegistryBehind)
    assert "archiver registry rebuild" in str(refused.topics[0].error)

    done = rebuild(fresh, topic)

    assert (done.from_journal, done.schema_versions, done.ranges) == (with_journal, 3, len(files))
    assert done.staged == PARTITIONS
    ledger_again, history_again, files_again = memory(fresh, topic)
    assert files_again == files
    assert ledger_again.entries == ledger.entries
    assert ledger_again.versions == ledger.versions
    if with_journal:
        assert ledger_again == ledger
        assert history_again == history
    again = rebuild(fresh, topic)
    assert (again.schema_versions, again.ranges) == (0, 0)

    archive_once(fresh, topic, engine=InlineEngine())
    produce(stack, topic, 4)
    archive_once(fresh, topic, engine=InlineEngine())
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert len(kafka) == 5 * len(values())
    assert from_archive(fresh, topic, PARTITIONS) == kafka
    assert memory(fresh, topic)[0].entries == ledger.entries
    with Registry(load_config(fresh).registry.dsn) as registry:
        counts = registry.files.counts(registry.topics.every()[0])
    assert counts[FileState.UPLOADED].ranges == 0
    assert counts[FileState.COMMITTED].rows == len(kafka)


@pytest.mark.slow
def test_rebuild_without_own_footers_and_snapshots(
    stack: Stack, engine: SparkEngine, lost: tuple[Path, str, Path]
) -> None:
    """Only the journal has the mappings, and only the table's property the ends."""
    config, topic, _ = lost
    ledger, _, _ = memory(config, topic)
    table = load_config(config).topic(topic).table
    engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    ).collect()
    engine.session.sql(
        f"CALL lake.system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)"
    ).collect()
    with pytest.raises(UpkeepError, match="journal"):
        rebuild(without_registry(stack, config, with_journal=False), topic)
    fresh = without_registry(stack, config, with_journal=True)
    # Nor does a replay need the registry: the journal knows what wrote the rows.
    replayed = from_archive(fresh, topic, PARTITIONS)
    assert replayed
    assert set(replayed) < set(from_kafka(stack, topic, PARTITIONS))
    assert rebuild(fresh, topic).schema_versions == len(ledger.versions)
    assert memory(fresh, topic)[0] == ledger
    archive_once(fresh, topic, engine=InlineEngine())
    assert from_archive(fresh, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def test_an_old_backup_is_brought_up_to_date(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    dsn = load_config(config).registry.dsn
    with psycopg.connect(dsn) as connection:
        tables = ("topics", "schema_versions", "field_ids", "files")
        backup = {name: connection.execute(f"SELECT json_agg({name})::text FROM {name}").fetchone() for name in tables}
    proto.write_text(RIGHT)
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    remembered = memory(config, topic)
    with psycopg.connect(dsn) as connection:
        connection.execute("TRUNCATE topics CASCADE")
        for name, row in backup.items():
            assert row is not None
            connection.execute(
                f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::{name}, %s)",
                row,
            )
    done = rebuild(config, topic)
    assert (done.schema_versions, done.ranges) == (1, PARTITIONS)
    assert memory(config, topic) == remembered
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def test_the_journal_has_every_version_and_commit(stack: Stack, lost: tuple[Path, str, Path]) -> None:
    config, topic, _ = lost
    settings = load_config(config)
    table = stack.catalog().load_table(settings.topic(topic).table)
    folder = f"{settings.archive.journal}/{settings.topic(topic).table}/{table.metadata.table_uuid}"
    objects = ObjectStore.of(settings.catalog)
    names = {file.path.removeprefix(f"{folder}/") for file in objects.list(folder)}
    commits = {
        snapshot.summary["archiver.commit-id"] for snapshot in table.metadata.snapshots if snapshot.summary is not None
    }
    (starts,) = (name for name in names if name.startswith("starts-"))
    assert names - {starts} == {f"schema-{number:010d}.json" for number in (1, 2, 3)} | {
        f"commit-{commit}.json" for commit in commits
    }
    assert len(commits) == 4
    assert not folder.startswith(table.location())


def test_a_journal_inside_a_table_is_refused(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path)
    settings = load_config(config)
    location = stack.catalog().load_table(settings.topic(topic).table).location()
    config.write_text(config.read_text().replace(json.dumps(settings.archive.journal), json.dumps(f"{location}/j")))
    report = ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once()
    assert isinstance(report.topics[0].error, ConfigError)
    assert "journal" in str(report.topics[0].error)
