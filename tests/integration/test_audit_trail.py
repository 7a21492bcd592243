"""The audit trail: one entry per act."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from archiver.audit.acts import Noted
from archiver.audit.check import TrailReport
from archiver.audit.entry import hash_of
from archiver.audit.signing import PublicKey, SigningKey, canonical
from archiver.audit.trail import AuditTrail
from archiver.audit.trails import FoundTrail, find_trails
from archiver.config import AuditSection, Config, load_config
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.repartition import repartition
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from catalog.registry import Registry
from tests.support.archive.audit_trails import appended
from tests.support.archive.job_runs import archive_once
from tests.support.archive.wrong_schema import RIGHT, archived_wrongly
from tests.support.catalog.foreign_writes import delete_rows
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import EACH, PARTITIONS, archive, assert_each_once, produce
from tests.support.servers.stack import Stack, unique
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration

KILLED = -9


def checked(config: Path, *keys: PublicKey) -> tuple[FoundTrail, TrailReport]:
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry:
        (topic,) = registry.topics.every()
        head = registry.audit.head(topic)
    (audit_trail,) = find_trails(settings, [topic.topic])
    report = audit_trail.check(keys, head=head)
    assert report.problems == []
    return audit_trail, report


def test_a_kill_between_a_commit_and_its_entry_leaves_one_entry(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(PARTITIONS)
    key = SigningKey.generate(tmp_path / "key", tmp_path / "key.pub").public
    config = stack.config({topic: {}}, audit={"principal": "ops@example.com", "signing_key": str(tmp_path / "key")})
    for turn, fault in enumerate(("after_commit:kill", "audit_recorded:kill@2", "audit_written:kill@2"), 1):
        produce(stack, topic, turn)
        assert archive(config, fault).returncode == KILLED
    assert archive(config).returncode == 0

    assert_each_once(stack, config, topic, 3 * EACH)
    audit_trail, report = checked(config, key)
    entries = list(audit_trail.entries())
    commits = [entry for entry in entries if entry["act"] == "append"]
    snapshots = stack.catalog().load_table(load_config(config).topic(topic).table).metadata.snapshots
    assert [entry["act"] for entry in entries[:2]] == ["create", "evolve"]
    assert [commit["details"]["snapshot_id"] for commit in commits] == [
        str(snapshot.snapshot_id) for snapshot in snapshots
    ]
    assert sum(commit["details"]["rows"] for commit in commits) == 3 * EACH * PARTITIONS
    assert [commit.get("late", False) for commit in commits] == [True, False, False]
    assert {entry["by"]["principal"] for entry in entries} == {"ops@example.com"}
    assert (report.checkpoints, report.signed >= 2, report.unsigned >= 1) == (1, True, True)
    with Registry(load_config(config).registry.dsn) as registry:
        assert registry.audit.holdings(registry.topics.every()[0]).digest == report.digest


def test_each_job_notes_its_acts(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path, partition_by="day", snapshot_retention="0s")
    settings = load_config(config)
    proto.write_text(RIGHT)
    assert Reprocess(settings, topic, engine=InlineEngine()).run().commit_id is not None
    delete_rows(stack, config, topic, 0, range(5))
    monkeypatch.setenv("ARCHIVER_FAULT", "after_commit:raise")
    with pytest.raises(Exception, match="A test asked"):
        RefillJob(settings, topic, engine=InlineEngine()).run()
    monkeypatch.delenv("ARCHIVER_FAULT")
    archive_once(config, topic, engine=InlineEngine())
    assert Orphans(settings, [topic], older_than=86_400.0, deletes=True).run().succeeded
    dsn = stack.database()
    config.write_text(config.read_text().replace(json.dumps(settings.registry.dsn), json.dumps(dsn)))
    Rebuild(load_config(config), [topic]).run()
    archive_once(config, topic, engine=InlineEngine())
    text = config.read_text().replace('"partition_by" = "day"', '"partition_by" = "hour"')
    config.write_text(text.replace('"partition_by"', '"hold" = true\n"partition_by"'))
    assert repartition(load_config(config), topic).was_changed
    config.write_text(text)
    limits = RetireLimits(offset=1_000)
    assert Expire(load_config(config), (topic,), limits=limits, engine=InlineEngine()).run().succeeded

    audit_trail, _ = checked(config)
    entries = list(audit_trail.entries())
    assert [entry["act"] for entry in entries] == [
        "create", "evolve", "append", "append", "evolve", "reprocess", "refill", "rebuild",
        "hold", "repartition", "release", "expire", "purge", "purge",
    ]  # fmt: skip
    assert [entry["act"] for entry in entries if entry.get("late")] == ["refill"]
    assert entries[5]["digest"]["before"] == entries[5]["digest"]["after"]
    assert entries[6]["details"]["rows"] > 0


@pytest.fixture
def config(stack: Stack) -> Config:
    return load_config(stack.config())


@pytest.fixture
def trail(stack: Stack, config: Config) -> Iterator[AuditTrail]:
    with Registry(config.registry.dsn) as registry:
        topic = registry.topics.register(
            cluster_id="cluster", topic=unique("t"), topic_id=uuid4(), table=f"kafka.{unique('t')}"
        )
        journal = replace(Journal.of(config), root=f"s3://{stack.bucket}/{unique('journal')}", audit=AuditSection())
        yield AuditTrail(topic=topic, journal=journal.named(topic.table, uuid4()), registry=registry)


def numbers(trail: AuditTrail) -> list[int]:
    folder = trail.folder
    assert folder is not None
    report = FoundTrail(folder=folder).check(head=trail.registry.audit.head(trail.topic))
    assert report.problems == []
    return [line.place for line in folder.lines()]


def test_processes_that_work_at_once_write_one_chain(trail: AuditTrail) -> None:
    acts = [appended(number) for number in range(12)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(trail.record, [*acts, *acts]))
    assert numbers(trail) == list(range(1, 14))


def test_who_begins_a_chain_waits_for_nobody_who_goes_on_with_it(config: Config, trail: AuditTrail) -> None:
    """Entries lock the topic's row, which the beginning of a chain has locked: another order deadlocks."""
    trail.record(appended(0))
    audit, topic = trail.registry.audit, trail.topic
    head = audit.head(topic)
    assert head is not None
    with psycopg.connect(config.registry.dsn) as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("UPDATE audit_chains SET entries = entries WHERE topic_id = %s", (topic.id,))
        begun = pool.submit(audit.begin, topic, replace(head, entries=0), ())
        try:
            begun.result(timeout=10)
        finally:
            connection.rollback()
    assert audit.head(topic) == head


def test_while_the_store_is_away_entries_wait(trail: AuditTrail, caplog: pytest.LogCaptureFixture) -> None:
    trail.record(appended(0))
    nowhere = ObjectStore.of({"s3.endpoint": "http://127.0.0.1:1", "s3.connect-timeout": "1"}, attempts=1)
    away = replace(trail, journal=replace(trail.journal, objects=nowhere))
    away.record(appended(1))
    away.record(appended(2))
    assert "3 entries" not in caplog.text
    assert "2 entries of the audit trail wait" in caplog.text
    assert len(trail.registry.audit.waiting(trail.topic)) == 2
    trail.begin()
    assert numbers(trail) == [1, 2, 3, 4]


@contextmanager
def set_back(trail: AuditTrail, dsn: str) -> Iterator[None]:
    """Set the database back to before the block, for another process."""
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT * FROM audit_chains")
        connection.execute("CREATE TABLE kept_entries AS SELECT * FROM audit_entries")
    yield
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE audit_chains SET (entries, last_hash, digest, config_holds)"
            " = (SELECT entries, last_hash, digest, config_holds FROM kept)"
        )
        connection.execute("DELETE FROM audit_entries WHERE seq > (SELECT max(seq) FROM kept_entries)")
    trail.journal.memory.agreed.clear()


def test_restored_database_continues_after_the_stored_entries(config: Config, trail: AuditTrail) -> None:
    for number in range(3):
        trail.record(appended(number))
    hold = Noted(kind="hold", id="hold-1", details={"why": "a case"})
    with set_back(trail, config.registry.dsn):
        trail.record(hold)

    trail.record(appended(7))
    trail.record(hold)

    assert numbers(trail) == [1, 2, 3, 4, 5, 6]


def test_trail_of_a_restored_database_knows_the_hold(config: Config, trail: AuditTrail) -> None:
    trail.begin()
    with set_back(trail, config.registry.dsn):
        trail.note_hold(is_held=True)
        trail.note_hold(is_held=False)
    trail.note_hold(is_held=True)
    head = trail.registry.audit.head(trail.topic)
    assert head is not None
    assert (head.is_held_by_config, head.config_holds) == (True, 3)
    trail.note_hold(is_held=True)
    assert numbers(trail) == [1, 2, 3, 4]


def forged(trail: AuditTrail, entries: list[bytes]) -> dict[str, bytes]:
    prev, changed = json.loads(entries[2])["prev"], {}
    for number in range(3, len(entries) + 2):
        entry = json.loads(entries[min(number, len(entries)) - 1]) | {"seq": number, "prev": prev}
        line = canonical(entry | {"act_id": f"{entry['act_id']}-forged"})
        changed[f"entry-{number:010d}.json"], prev = line, hash_of(line)
    return changed


@pytest.mark.parametrize(
    "others",
    [
        forged,
        lambda _, entries: {f"entry-{9_999_999_999}.json": b'{"seq": '},
        lambda _, entries: {f"entry-{len(entries) + 1:010d}.json": b"[]"},
        lambda _, entries: {f"entry-{len(entries) + 1:010d}.json": entries[-1]},
    ],
    ids=["forged", "cut", "no entry", "entry again"],
)
def test_foreign_entries_in_a_trail_are_ignored(
    trail: AuditTrail, caplog: pytest.LogCaptureFixture, others: Callable[[AuditTrail, list[bytes]], dict[str, bytes]]
) -> None:
    for number in range(4):
        trail.record(appended(number))
    folder = trail.folder
    assert folder is not None
    entries = [line.data for line in folder.lines()]
    own = trail.registry.audit.head(trail.topic)
    assert own is not None
    put_in = others(trail, entries)
    for name, data in put_in.items():
        folder.objects.write(f"{folder.path}/{name}", data)
    trail.journal.memory.agreed.clear()

    trail.record(appended(4))
    assert "isn't the one that the registry knows" in caplog.text
    (waiting,) = trail.registry.audit.waiting(trail.topic)
    assert json.loads(waiting.line)["prev"] == own.last_hash

    for name in put_in:
        delete_object(folder.objects, f"{folder.path}/{name}")
    for number, data in enumerate(entries, 1):
        folder.objects.write(f"{folder.path}/entry-{number:010d}.json", data)
    trail.begin()
    assert numbers(trail) == [1, 2, 3, 4, 5, 6]
