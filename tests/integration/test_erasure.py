"""Erased records are gone from all objects."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import TopicPartition

from archiver.config import load_config
from archiver.errors import InjectedFault, UpkeepError
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.records.where import Where
from archiver.rewrite.upload_claims import UploadClaims
from archiver.storage.objects import ObjectStore
from archiver.storage.spool import KEPT
from archiver.upkeep.compact.job import Compact as CompactJob
from archiver.upkeep.compact.job import Wish
from archiver.upkeep.erase import finishing, job, removing
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.holds import HoldKeeper
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import KeptFor
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from catalog.errors import RecordsHeld
from catalog.ranges.holes import GoneRows
from tests.support.archive.forgotten import (
    NAME,
    acts,
    files_with_her_in_sets,
    hashes_of_her,
    objects_with_her,
    registry_with_her,
    values_of_files,
)
from tests.support.archive.job_runs import archive_once, run, without_registry
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.catalog.foreign_writes import compact, delete_rows, table_of, tag
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

START = 1_767_225_600_000


def produce(stack: Stack, topic: str, numbers: range) -> None:
    """Each fifth record is hers; raw values can be found in any object.

    Padding makes files large enough for sets of values.
    """
    stack.produce(
        topic,
        *(
            {"key": NAME if n % 5 == 3 else b"k%d" % n, "value": b"%s:%d" % (NAME, n) if n % 5 == 3 else b"v%d" % n}
            | {"timestamp": START + n, "headers": [("padding", random.Random(n).randbytes(4_000))]}
            for n in numbers
        ),
    )


def archived(stack: Stack, **settings: Any) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: settings})
    for start in (0, 10, 20):
        produce(stack, topic, range(start, start + 10))
        archive_once(config)
    return config, topic


def erase(config: Path, topic: str, where: str | None = f"key = {NAME.decode()!r}", **options: Any) -> EraseReport:
    return Erase(
        load_config(config),
        topic,
        None if where is None else Where.parse(where),
        options=EraseOptions(clock=lambda: time.time() + 9 * 86_400, **options),
        engine=InlineEngine(),
    ).run()


def test_expire_keeps_what_an_erasure_has_promised_to_readers(stack: Stack) -> None:
    config, topic = archived(stack, snapshot_retention="1s")
    report = erase(config, topic, grace=3_600.0)
    assert (report.purged.deleted, len(report.unfinished)) == (0, 1)
    time.sleep(1.5)
    (done,) = Expire(load_config(config), [topic], engine=InlineEngine()).run().topics
    assert (done.error, done.purged.deleted) == (None, 0)
    assert objects_with_her(config)
    assert erase(config, topic, None).unfinished == ()
    assert objects_with_her(config) == []


def test_orphans_keeps_what_an_erasure_has_promised_to_readers(stack: Stack) -> None:
    config, topic = archived(stack)
    config.write_text(config.read_text().replace("[archive]", '[archive]\norphan_grace = "0s"'))
    assert len(erase(config, topic, grace=3_600.0).unfinished) == 1
    table = table_of(stack, config, topic)
    for snapshot in table.snapshots()[:-1]:  # as another engine lets them expire
        table_of(stack, config, topic).maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    (result,) = Orphans(load_config(config), [topic], deletes=True, clock=lambda: time.time() + 86_400).run().topics
    assert (result.error, result.deleted, result.kept[KeptFor.PROMISE] > 0) == (None, [], True)
    assert objects_with_her(config)
    assert erase(config, topic, None).unfinished == ()
    assert objects_with_her(config) == []


def hers(records: Sequence[Seen]) -> list[Seen]:
    return [record for record in records if record.key == NAME]


def others(records: Sequence[Seen]) -> list[Seen]:
    return [record for record in records if record.key != NAME]


def check(config: Path, topic: str, records: Sequence[Seen]) -> None:
    assert from_archive(config, topic, 1) == list(records)
    assert RefillJob(load_config(config), topic, engine=InlineEngine()).run().mended == ()


@pytest.mark.parametrize("fault", [None, "before_commit", "after_commit"])
def test_erased_records_are_in_no_object_and_stay_gone(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    config, topic = archived(stack)
    with monkeypatch.context() as dead:  # an upload that was never staged, and a range that waits for its commit
        produce(stack, topic, range(30, 40))
        dead.setenv("ARCHIVER_FAULT", "before_stage:raise")
        assert not run(config).succeeded
        dead.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    assert len(objects_with_her(config)) > 4
    assert (files_with_her_in_sets(config) >= 4, hashes_of_her(config)) == (True, 4)
    kafka = from_kafka(stack, topic, 1)
    dry = erase(config, topic, dry_run=True)
    assert (dry.rows, dry.offsets) == (6, {0: 6}), "what waits for its commit is not in the table yet"
    if fault is not None:
        assert reconcile(load_config(config), [topic])[0].landed == 1
        with monkeypatch.context() as kill:
            kill.setenv("ARCHIVER_FAULT", f"{fault}:raise")
            with pytest.raises(InjectedFault):
                erase(config, topic)
        done = erase(config, topic)
        assert len(done.given_up) == 1, "nobody knows whether the killed one had found all"
    else:
        done = erase(config, topic)
        assert (done.rows, done.files, done.offsets) == (8, 4, {0: 8})
    assert done.succeeded, done
    assert len(done.finished) == 1
    assert objects_with_her(config) == []
    assert not registry_with_her(config)
    assert (files_with_her_in_sets(config), hashes_of_her(config)) == (0, 0)
    check(config, topic, others(kafka))
    with Workshop.of(config) as shop:
        assert shop.registry.rows.gone(shop.topic) == GoneRows(erased=8)
        checked = shop.registry.rows.last_checked(shop.topic)
        assert checked is not None
        assert checked.unseen_before is None, "the erasure's own expiry of snapshots hides nothing"
        assert shop.registry.erasures.offsets(shop.topic) == {0: [(n, n + 1) for n in range(3, 40, 5)]}
    assert erase(config, topic).rows == 0, "there is nothing of hers"
    delete_rows(stack, config, topic, 0, range(10))  # a range with erased records is not fetched from Kafka again
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE) == 8
    check(config, topic, others(kafka))
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    values, restored = values_of_files(config), values_of_files(fresh)
    assert [values[path] == restored[path] for path in values.keys() & restored.keys()].count(True) >= 3
    with Workshop.of(fresh) as shop:
        assert shop.registry.erasures.offsets(shop.topic) == {0: [(n, n + 1) for n in range(3, 40, 5)]}
    check(fresh, topic, others(kafka))
    produce(stack, topic, range(40, 45))
    archive_once(fresh)
    assert hers(from_archive(fresh, topic, 1)) == hers(from_kafka(stack, topic, 1))[-1:], "a new record is a new one"


def test_a_hold_and_what_is_missing_refuse_and_a_tag_is_named(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    placed = HoldKeeper(load_config(config)).place(topic, start="8", end="9")
    with pytest.raises(RecordsHeld, match="legal hold"):
        erase(config, topic)
    assert from_archive(config, topic, 1) == kafka
    HoldKeeper(load_config(config)).release(topic, placed.hold.id)
    compact(stack, config, topic)
    delete_rows(stack, config, topic, 0, [8])
    with pytest.raises(UpkeepError, match="lacks archived rows"):
        erase(config, topic)
    RefillJob(load_config(config), topic, accept_removed=True, engine=InlineEngine()).run()
    tag(stack, config, topic, "kept")
    done = erase(config, topic)
    assert not done.succeeded
    assert list(done.purged.snapshots.named) == ["kept"]
    assert len(done.unfinished) == 1
    check(config, topic, others(kafka))
    with stack.catalog().load_table(load_config(config).topic(topic).table).manage_snapshots() as manage:
        manage.remove_tag("kept")
    done = erase(config, topic, None)
    assert done.succeeded, json.dumps({"left": done.purged.left, "copies": done.copies})
    assert objects_with_her(config) == []
    with Workshop.of(config) as shop:
        assert shop.registry.rows.gone(shop.topic) == GoneRows(erased=6)


def test_an_older_rewrite_keeps_an_erasure_open_until_it_is_over(stack: Stack) -> None:
    config, topic = archived(stack)
    with Workshop.of(config) as shop:
        with UploadClaims.of_run(shop.registry, shop.topic):
            done = erase(config, topic)
            assert (done.rows, len(done.rewriters), len(done.unfinished)) == (6, 1, 1)
            assert not done.succeeded
            with UploadClaims.of_run(shop.registry, shop.topic):  # it reads files that have none
                assert erase(config, topic, None).rewriters == done.rewriters
        with UploadClaims.of_run(shop.registry, shop.topic):
            done = erase(config, topic, None)
        assert (done.rewriters, len(done.finished)) == ((), 1)


def test_an_erasure_whose_search_was_cut_short_is_never_attested(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    with monkeypatch.context() as kill:
        kill.setattr(removing, "BATCH", 1)
        kill.setenv("ARCHIVER_FAULT", "after_commit:raise")
        with pytest.raises(InjectedFault):
            erase(config, topic)
    left = erase(config, topic, None)
    assert (left.finished, left.unsearched, left.succeeded) == ((), left.unfinished, False)
    assert len(hers(from_archive(config, topic, 1))) == 4, "no condition is kept to go on with"
    assert acts(config, topic, "erase") == []
    done = erase(config, topic)
    assert (done.rows, len(done.finished), done.given_up, done.succeeded) == (4, 1, left.unfinished, True)
    assert [act["id"] for act in acts(config, topic, "erase")] == [done.erasure]
    assert [(act["id"], act["superseded_by"]) for act in acts(config, topic, "abandon")] == [
        (*left.unfinished, done.erasure)
    ]
    assert objects_with_her(config) == []
    assert erase(config, topic, None).unfinished == ()
    check(config, topic, others(kafka))


def test_erasure_leaves_a_finished_one_to_its_own_run(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    begun, go_on, ended, over = (threading.Event() for _ in range(4))
    commit, rewriters, finish = removing._commit, finishing._rewriters, finishing.finish

    def is_here() -> bool:
        return threading.current_thread() is threading.main_thread()

    def late_commit(*args: Any) -> bool:
        if not is_here():
            begun.set()
            assert go_on.wait(60)
        return commit(*args)

    def late_rewriters(*args: Any, **named: Any) -> tuple[str, ...]:
        if is_here():  # what is open was read before
            go_on.set()
            assert ended.wait(60)
        return rewriters(*args, **named)

    def late_finish(*args: Any, **named: Any) -> None:
        if not is_here():
            ended.set()
            assert over.wait(60)
        finish(*args, **named)

    monkeypatch.setattr(removing, "_commit", late_commit)
    monkeypatch.setattr(finishing, "_rewriters", late_rewriters)
    monkeypatch.setattr(job, "finish", late_finish)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(erase, config, topic)
        try:
            assert begun.wait(60)
            second = erase(config, topic, "offset = 0")
        finally:
            go_on.set()
            over.set()
        first = running.result()
    assert (second.finished, second.given_up) == ((second.erasure,), ())
    assert (first.finished, first.succeeded) == (second.unfinished, True)
    assert objects_with_her(config) == []
    check(config, topic, others(kafka)[1:])


def test_a_restored_database_does_not_refill_what_was_erased(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    tag(stack, config, topic, "kept")  # the old files stay
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("CREATE TABLE before AS SELECT * FROM files")
    assert erase(config, topic).rows == 6
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("DELETE FROM files")
        connection.execute("INSERT INTO files SELECT * FROM before")
        connection.execute("DELETE FROM erased_offsets")
        connection.execute("DELETE FROM erasures")
        connection.execute("DROP TABLE before")
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert (report.rows(Fate.LEFT), report.rows(Fate.FROM_FILE), report.succeeded) == (6, 0, False)
    assert from_archive(config, topic, 1) == others(kafka)


def test_retired_records_are_erased_while_the_store_has_them(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack, snapshot_retention="1d")
    CompactJob(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run()
    limits = RetireLimits(offset=30)
    (retired,) = Expire(load_config(config), (topic,), limits=limits, engine=InlineEngine()).run().topics
    assert (retired.first_offsets, retired.purged.deleted) == ({0: 30}, 0)
    produce(stack, topic, range(30, 40))
    archive_once(config)
    kafka = from_kafka(stack, topic, 1)
    assert len(objects_with_her(config)) > 4, "three small files, the one of all, and manifests"
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", "before_commit:raise")
        with pytest.raises(InjectedFault):
            erase(config, topic, "partition = 0 and offset = 3")
    (settled,) = reconcile(load_config(config), [topic])
    assert settled.error is None
    with Workshop.of(config) as shop:
        assert shop.registry.erasures.offsets(shop.topic) == {}, "no commit says so"
    done = erase(config, topic)
    assert done.succeeded, (done.purged, done.copies)
    assert (done.rows, done.offsets) == (2, {0: 8})
    with Workshop.of(config) as shop:
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
    assert objects_with_her(config) == []
    check(config, topic, others(kafka)[len(others(kafka[:30])) :])
    assert erase(config, topic).commits == []


def test_retired_files_kept_by_a_tag_are_erased_once(stack: Stack) -> None:
    config, topic = archived(stack)
    tag(stack, config, topic, "kept")
    limits = RetireLimits(offset=20)
    Expire(load_config(config), (topic,), limits=limits, engine=InlineEngine()).run()
    done = erase(config, topic)
    assert (done.rows, done.offsets, len(done.commits)) == (2, {0: 6}, 1)
    assert list(done.purged.snapshots.named) == ["kept"]
    again = erase(config, topic, None)
    assert (again.commits, len(again.unfinished)) == ([], 1)


@pytest.mark.parametrize("has_lost", [False, True])
def test_denied_files_go_once_their_other_records_are_archived(stack: Stack, *, has_lost: bool) -> None:
    config, topic = archived(stack)
    if has_lost:
        produce(stack, topic, range(30, 40))
        stack.admin.delete_records([TopicPartition(topic, 0, 35)])[TopicPartition(topic, 0)].result(30)
        assert (
            ArchiveJob(load_config(config), [topic], accepts=AcceptedLosses(gaps=True), engine=InlineEngine())
            .run_once()
            .succeeded
        )
    settings = load_config(config)
    objects = ObjectStore.of(settings.catalog)
    kept = settings.archive.spool / KEPT
    kept.mkdir()
    for number, task in enumerate(table_of(stack, config, topic).scan().plan_files()):
        (kept / f"{topic}-0-{number}.parquet").write_bytes(objects.read(task.file.file_path))
    report = erase(config, topic)
    assert (report.local_deleted, report.local, report.succeeded) == (4 if has_lost else 3, (), True)
    assert list(kept.iterdir()) == []
