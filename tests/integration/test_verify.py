"""`archiver verify` on healthy and damaged tables."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.storage.journal import Journal
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.verify.choice import VerifyChoice
from archiver.upkeep.verify.findings import FaultKind, GapKind
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from catalog.errors import RegistryNotMigrated
from catalog.ranges.rewrite import RewriteGroup
from tests.support.archive.injuries import INJURIES
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.patient import Patient, healed
from tests.support.archive.readers import wait_until_decided
from tests.support.archive.regrouping import Workshop, retired
from tests.support.catalog.foreign_writes import change_values, compact, delete_rows
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration


def verified(config: Path, topic: str, *, choice: VerifyChoice | None = None, **options: Any) -> VerifiedTopic:
    job = Verify(load_config(config), [topic], choice=choice, options=VerifyOptions(**options), engine=InlineEngine())
    report = job.run()
    assert report.failed == (), report.failed
    return report.topics[0]


def kinds(report: VerifiedTopic) -> set[str]:
    return {fault.kind for fault in report.faults}


def gaps(report: VerifiedTopic) -> dict[str, int]:
    counts: dict[str, int] = {}
    for partition in report.partitions:
        for gap in partition.gaps:
            counts[gap.kind] = counts.get(gap.kind, 0) + gap.count
    return counts


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    return archive_in_three(stack)


@pytest.fixture(scope="module")
def untouched(stack: Stack) -> tuple[Path, str]:
    return archive_in_three(stack)


def archive_in_three(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic(partitions=2)
    config = stack.config({topic: {}})
    for start in (0, 20, 40):
        records = numbered(range(start, start + 20), partitions=2)
        stack.produce(topic, *({**record, "key": b"k", "headers": [("h", b"v")]} for record in records))
        archive_once(config)
    return config, topic


def test_foreign_compaction_and_refills_keep_proofs(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    before = verified(config, topic, compares=True)
    assert (before.faults, before.rows, before.compared_rows) == ((), 60, 60)
    assert gaps(before) == {}
    compact(stack, config, topic)
    after = verified(config, topic, compares=True)
    assert (after.faults, after.root, after.moved_rows, after.compared_rows) == ((), before.root, 60, 60)
    delete_rows(stack, config, topic, 0, [3, 4])
    lacking = verified(config, topic)
    assert kinds(lacking) == {FaultKind.DELETED}
    assert (gaps(lacking), lacking.rows) == ({GapKind.DELETED: 2}, 50)
    RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    mended = verified(config, topic)
    assert (mended.faults, mended.root) == ((), before.root)
    change_values(stack, config, topic, 1, 7)
    altered = verified(config, topic)
    assert kinds(altered) == {FaultKind.ALTERED}
    assert gaps(altered) == {GapKind.REWRITTEN: 10}


def test_aborted_lost_retired_and_erased_records_are_distinct(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.begun(topic, *numbered(range(5))).commit_transaction(30)
    wait_until_decided(stack, topic, 1)
    stack.begun(topic, *numbered(range(5))).abort_transaction(30)
    wait_until_decided(stack, topic, 1)
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    result = verified(config, topic, compares=True)
    assert (result.faults, result.rows, gaps(result)) == ((), 25, {GapKind.NO_RECORD: 7})
    assert [(gap.start_offset, gap.end_offset) for gap in result.partitions[0].gaps] == [(5, 12)]
    with Workshop.of(config) as shop:
        first = shop.files()[0]
        shop.put(RewriteGroup(paths=(first.path,), emptied=(retired(first, 0, 22),), why="old"), reason="retention")
    result = verified(config, topic)
    assert (result.faults, result.rows, gaps(result)) == ((), 10, {GapKind.RETIRED: 15})
    delete_rows(stack, config, topic, 0, [25])
    RefillJob(load_config(config), topic, accept_removed=True, engine=InlineEngine()).run()
    result = verified(config, topic)
    assert (result.faults, result.rows, gaps(result)) == ((), 9, {GapKind.RETIRED: 15, GapKind.ERASED: 1})
    stack.produce(topic, *numbered(range(10)))
    stack.admin.delete_records([TopicPartition(topic, 0, 36)])[TopicPartition(topic, 0)].result(30)
    done = ArchiveJob(load_config(config), [topic], accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once()
    assert done.succeeded
    result = verified(config, topic, compares=True)
    assert (result.faults, gaps(result)[GapKind.LOST], result.compared_rows) == ((), 4, 6)


def test_a_compaction_of_ours_keeps_the_root(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    root = verified(config, topic).root
    done = Compact(load_config(config), [topic], Wish(min_files=2), engine=InlineEngine).run()
    assert done.succeeded
    result = verified(config, topic, compares=True)
    assert (result.faults, result.root, result.moved_rows, result.compared_rows) == ((), root, 0, 60)
    assert result.files < 6
    produced = numbered(range(4), partitions=2)
    stack.produce(topic, *produced)
    archive_once(config)
    assert verified(config, topic).faults == ()


def test_what_expired_is_retired_and_the_rest_is_proven(archived: tuple[Path, str]) -> None:
    config, topic = archived
    for offset, rows, gone in ((10, False, 20), (15, True, 30)):
        done = Expire(
            load_config(config),
            [topic],
            limits=RetireLimits(offset=offset),
            options=ExpireOptions(rows=rows),
            engine=InlineEngine(),
        ).run()
        assert done.succeeded, done
        result = verified(config, topic, compares=True)
        assert (result.faults, result.rows, gaps(result)) == ((), 60 - gone, {GapKind.RETIRED: gone})
        alone = verified(config, topic, asks_registry=False)
        assert (alone.faults, alone.root) == ((), result.root)


def test_journal_and_store_alone_are_enough(stack: Stack, untouched: tuple[Path, str]) -> None:
    config, topic = untouched
    root = verified(config, topic).root
    settings = load_config(config)
    bare = config.with_name("bare.toml")
    text = config.read_text().replace(json.dumps(settings.catalog["uri"]), '"http://127.0.0.1:1"')
    text = text.replace(json.dumps(settings.registry.dsn), '"postgresql://nobody@127.0.0.1:1/none"')
    bare.write_text(text.replace(json.dumps(settings.kafka["bootstrap.servers"]), '"127.0.0.1:1"'))
    result = verified(bare, topic)
    assert (result.faults, result.root) == ((), root)
    assert "can't be asked" in result.sources["catalog"]
    assert "can't be asked" in result.sources["registry"]
    assert result.sources["table"].startswith("by its metadata file")
    unjournaled = config.with_name("unjournaled.toml")
    unjournaled.write_text(
        config.read_text().replace(json.dumps(settings.archive.journal), f'"s3://{stack.bucket}/no"')
    )
    assert (verified(unjournaled, topic).faults, verified(unjournaled, topic).root) == ((), root)
    alone = verified(unjournaled, topic, asks_registry=False)
    assert (alone.faults, alone.root) == ((), root), "footers alone"


def test_a_catalog_from_an_old_backup_is_told(untouched: tuple[Path, str]) -> None:
    config, topic = untouched
    with Workshop.of(config) as shop:
        log = [entry.metadata_file for entry in shop.table.iceberg.metadata.metadata_log]
        newest = shop.table.iceberg.metadata_location
    assert verified(config, topic, metadata=newest).faults == ()
    for asks_registry in (True, False):
        report = verified(config, topic, metadata=log[-1], asks_registry=asks_registry)
        assert kinds(report) == {FaultKind.HISTORY}
        assert {(fault.partition, fault.start_offset, fault.end_offset) for fault in report.faults} == {
            (0, 20, 30),
            (1, 20, 30),
        }


def test_an_emptied_journal_is_told(archived: tuple[Path, str]) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        journal = Journal.of(load_config(config)).of_table(shop.table)
    for file in journal.objects.list(str(journal.folder)):
        delete_object(journal.objects, file.path)
    report = verified(config, topic)
    assert (kinds(report), report.rows) == ({FaultKind.JOURNAL}, 60), "the registry knows that it was written"
    alone = verified(config, topic, asks_registry=False)
    assert any("configured and empty" in note for note in alone.notes)


def test_parts_and_samples_leave_the_rest_unread(untouched: tuple[Path, str]) -> None:
    config, topic = untouched
    part = verified(config, topic, choice=VerifyChoice.parse(start="10", end="15", partitions=(1,)))
    assert (part.faults, part.rows, gaps(part)) == ((), 10, {GapKind.NOT_READ: 50})
    since = verified(config, topic, choice=VerifyChoice.parse(start="2001-01-01T00:00:00Z", end="2101-01-01T00:00:00Z"))
    assert (since.faults, since.rows) == ((), 60)
    sample = verified(config, topic, choice=VerifyChoice.parse(sample="50%", seed=3))
    assert sample.faults == ()
    assert sample.rows + gaps(sample)[GapKind.NOT_READ] == 60


def test_unfinished_run_continues_and_reads_changed_files_again(
    archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic = archived

    class Killed(BaseException): ...

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("archiver.upkeep.verify.state.SETTLED_MS", 2_000)
    time.sleep(2.1)  # else a changed file may have the time of the first one: the store tells whole seconds
    with monkeypatch.context() as patched:
        patched.setattr("archiver.upkeep.verify.topic_run.Judge.judge", killed)
        with pytest.raises(Killed):
            verified(config, topic)
    with Patient.of(config) as patient:
        path = patient.paths()[0]
        patient.write(path, patient.read(path)[:-1] + b"x")
    result = verified(config, topic)
    assert result.resumed_files == 5
    assert any("weren't read again" in note for note in result.notes)
    assert {fault.file for fault in result.faults if fault.file} == {path}
    with Patient.of(config) as patient:
        assert verified(config, topic).resumed_files == 0, "a finished run leaves nothing"


def test_unmigrated_registry_makes_no_row_look_foreign(archived: tuple[Path, str]) -> None:
    config, topic = archived
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith('"journal"')))
    Compact(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run()
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)")
    report = Verify(load_config(config), [topic], engine=InlineEngine()).run()
    assert [type(failure.error) for failure in report.failed] == [RegistryNotMigrated], report.topics


def test_every_kind_of_injury_is_found(untouched: tuple[Path, str]) -> None:
    config, topic = untouched
    missed = []
    for name, injure in INJURIES.items():
        with healed(config) as patient:
            injure(patient, 1)
            if (
                Verify(load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(resumes=False))
                .run()
                .succeeded
            ):
                missed.append(name)
    assert missed == []
    assert verified(config, topic).faults == ()


def test_the_command_writes_a_signed_report_that_can_be_checked(untouched: tuple[Path, str], tmp_path: Path) -> None:
    config, topic = untouched
    key, public, report = (tmp_path / name for name in ("key.pem", "public.pem", "report.json"))
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(public)], check=True)
    signing = config.with_name("signing.toml")
    signing.write_text(f'{config.read_text()}\n[audit]\nsigning_key = "{key}"\n')
    run: Callable[..., object] = CliRunner().invoke
    done = run(app, ["verify", topic, "--config", str(signing), "--report", str(report), "--json"])
    assert done.exit_code == 0, done.output  # type: ignore[attr-defined]
    checked = run(app, ["verify", "--check-report", str(report), "--public-key", str(public), "--no-json"])
    assert checked.exit_code == 0  # type: ignore[attr-defined]
    assert "the report is intact, it is signed by key" in checked.output  # type: ignore[attr-defined]
    assert "60" in report.with_name("report.json.md").read_text()
    text = report.read_text()
    report.write_text(text.replace('"records": 60', '"records": 61'))
    assert run(app, ["verify", "--check-report", str(report), "--public-key", str(public)]).exit_code == 1  # type: ignore[attr-defined]
