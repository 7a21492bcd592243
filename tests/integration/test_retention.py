"""`archiver expire`: retired records, kept ones, and rebuilds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import KafkaException, TopicPartition

from archiver.archive.topic_archive import open_archive
from archiver.chores.runner import ChoreRunner
from archiver.chores.tidying import TIDYING
from archiver.config import load_config
from archiver.errors import ConfigError, InjectedFault
from archiver.ingest.job import ArchiveJob
from archiver.ingest.stopping import StopSignal
from archiver.records.selection import Selection
from archiver.records.where import Where
from archiver.replay import ReplayConsumer
from archiver.replay.range_notes import range_notes
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.removal.snapshots import HoldingSnapshots, holding_snapshots
from archiver.upkeep.retire.chore import retirement
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from archiver.upkeep.retire.report import ExpireEvent, ExpireFinished
from catalog.iceberg.rewrite_commit import Rewritten
from catalog.ranges.holes import GoneRows
from catalog.ranges.rewrite import NewFile, RecordSpan, RewriteGroup
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.archive.retirements import DAY, START, archived, check, expire, objects_left, produce, ranges_of
from tests.support.catalog.foreign_writes import compact, table_of, tag
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration


def erase_dry(config: Path, topic: str, where: str) -> EraseReport:
    return Erase(
        load_config(config), topic, Where.parse(where), options=EraseOptions(dry_run=True), engine=InlineEngine()
    ).run()


def test_old_files_are_retired_and_everybody_is_told(stack: Stack) -> None:
    config, topic = archived(stack, retention="1d")
    with Workshop.of(config) as shop:
        paths = [file.path for file in shop.files()]
    assert expire(config, topic, day=1.0).files == 0, "the first file's records are a day old, and not older"
    dry = expire(config, topic, day=2.5, dry_run=True)
    assert (dry.first_offsets, dry.rows, dry.files, dry.commits) == ({0: 20}, 20, 2, [])
    done = expire(config, topic, day=2.5)
    assert done.succeeded
    assert (done.first_offsets, done.rows, done.files, done.rewritten) == ({0: 20}, 20, 2, 0)
    assert len(done.commits) == 1
    assert done.purged.deleted == 2
    assert objects_left(config, paths) == paths[2:], "no snapshot needs them"
    kafka = from_kafka(stack, topic, 1)
    check(config, topic, kafka[20:])
    archive = open_archive(load_config(config), topic)
    assert (archive.watermarks(0), archive.first_offset(0)) == ((20, 30), 20)
    (note,) = range_notes(archive, Selection.parse())
    assert "begins at 20" in note
    strict = ReplayConsumer(load_config(config), {"auto.offset.reset": "error"})
    with strict as consumer, pytest.raises(KafkaException, match="retired"):
        consumer.assign([TopicPartition(topic, 0, 5)])
    before = ranges_of(config)
    assert [row[1:3] for row in before] == [(0, 20), (20, 30)], "what is retired is one row"
    with Workshop.of(config) as shop:
        assert shop.registry.rows.gone(shop.topic) == GoneRows(retired=20)
        assert shop.registry.retention.first_offsets(shop.topic) == {0: 20}
        assert shop.registry.retention.removed_files(shop.topic) == {}
    for with_journal in (True, False):
        fresh = without_registry(stack, config, with_journal=with_journal)
        Rebuild(load_config(fresh), [topic]).run()
        with Workshop.of(fresh) as shop:
            assert shop.registry.retention.first_offsets(shop.topic) == {0: 20}
        if with_journal:
            assert ranges_of(fresh) == before
        check(fresh, topic, kafka[20:])
    produce(stack, topic, range(30, 40), day=3)
    archive_once(config)
    assert expire(config, topic, day=3.5).first_offsets == {0: 30}
    assert [row[1:3] for row in ranges_of(config)] == [(0, 30), (30, 40)]
    check(config, topic, from_kafka(stack, topic, 1)[30:])


def test_oldest_files_beyond_a_size_go_unless_tagged_meanwhile(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    with Workshop.of(config) as shop:
        sizes = [file.size_bytes for file in shop.files()]
        paths = [file.path for file in shop.files()]
    tagged: list[int] = []

    def found_slowly(*args: Any, **options: Any) -> HoldingSnapshots:
        holding = holding_snapshots(*args, **options)
        if holding.going and not tagged:
            tagged.append(holding.going[-1].snapshot_id)
            tag(stack, config, topic, "kept", tagged[0])
        return holding

    monkeypatch.setattr("archiver.upkeep.removal.purge.holding_snapshots", found_slowly)
    most = sizes[1] + sizes[2] + 1
    assert expire(config, topic, limits=RetireLimits(size_bytes=most)).files == 0, (
        "without the first, less would be left"
    )
    done = expire(config, topic, limits=RetireLimits(size_bytes=most - 1))
    assert (done.first_offsets, done.purged.deleted) == ({0: 10}, 0)
    assert done.purged.snapshots.named == {"kept": tagged[0]}
    assert table_of(stack, config, topic).metadata.refs["kept"].snapshot_id == tagged[0]
    assert objects_left(config, paths) == paths
    check(config, topic, from_kafka(stack, topic, 1)[10:])


def test_the_service_retires_in_its_pauses(stack: Stack) -> None:
    config, topic = archived(stack, retention="1d", expire="auto")
    produce(stack, topic, range(30, 40), day=3650)  # the future has no end: it stays until its batch is old
    settings, stop = load_config(config), StopSignal()
    with Workshop.of(config) as shop:  # as `archiver expire TOPIC --yes` does
        shop.registry.consents.give(shop.topic, 'retention = "1d"', reason="more than half", by="jane")
    reports: list[ExpireFinished] = []

    def heard(event: ExpireEvent) -> None:
        if isinstance(event, ExpireFinished):
            reports.append(event)
            stop.set()

    job = ArchiveJob(
        settings, (topic,), engine=InlineEngine(), chores=ChoreRunner((TIDYING, retirement(settings, heard)))
    )
    assert job.run_every(20.0, stop).succeeded
    (done,) = reports[0].report.topics
    assert done.first_offsets == {0: 30}, "what was archived in the same run is young"
    assert done.purged.deleted == 3
    check(config, topic, from_kafka(stack, topic, 1)[30:])


@pytest.mark.parametrize("fault", ["before_commit", "after_commit"])
def test_rows_at_the_edge_go_only_if_asked_through_a_kill(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    limits = RetireLimits(offset=15)
    assert expire(config, topic, limits=limits).first_offsets == {0: 10}
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", f"{fault}:raise")
        assert isinstance(expire(config, topic, limits=limits, rows=True).error, InjectedFault)
    (done,) = reconcile(load_config(config), [topic])
    assert done.error is None
    done_again = expire(config, topic, limits=limits, rows=True)
    assert done_again.succeeded
    assert done_again.rewritten == (1 if fault == "before_commit" else 0)
    assert done_again.purged.deleted == 1, "the killed run needs its old file no more"
    check(config, topic, kafka[15:])
    with Workshop.of(config) as shop:
        assert shop.registry.rows.gone(shop.topic) == GoneRows(retired=15)
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
    assert expire(config, topic, limits=RetireLimits(time_ms=START + 2 * DAY), rows=True).first_offsets == {0: 20}
    before = ranges_of(config)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ranges_of(fresh) == before
    check(fresh, topic, kafka[20:])


def test_files_that_others_put_together_are_retired_too(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    compact(stack, config, topic)
    done = expire(config, topic, limits=RetireLimits(offset=20))
    assert (done.succeeded, done.first_offsets) == (True, {})
    done = expire(config, topic, limits=RetireLimits(offset=25), rows=True)
    assert (done.succeeded, done.first_offsets, done.rows) == (True, {0: 25}, 25)
    check(config, topic, kafka[25:])
    before = ranges_of(config)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ranges_of(fresh) == before
    compact(stack, config, topic)
    assert expire(config, topic, limits=RetireLimits(offset=30)).first_offsets == {0: 30}
    check(config, topic, [])
    produce(stack, topic, range(30, 35), day=3)
    archive_once(config)
    check(config, topic, from_kafka(stack, topic, 1)[30:])


def test_a_clock_that_is_wrong_retires_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack, retention="1d")
    ahead = time.time() + 7_300
    monkeypatch.setattr("archiver.upkeep.retire.job.time.time", lambda: ahead)
    with pytest.raises(ConfigError, match="more than an hour"):
        Expire(load_config(config), (topic,)).run()
    with Workshop.of(config) as shop:
        assert len(list(shop.files())) == 3


def test_a_restored_database_does_not_refill_what_was_retired(stack: Stack) -> None:
    config, topic = archived(stack, retention="1d")
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT * FROM files")
    assert expire(config, topic, day=2.5).first_offsets == {0: 20}
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("DELETE FROM files")
        connection.execute("INSERT INTO files SELECT * FROM kept")
        connection.execute("DELETE FROM first_offsets")
    check(config, topic, from_kafka(stack, topic, 1)[20:])


@pytest.mark.parametrize("rows", [False, True])
def test_file_with_ranges_on_both_sides_stays_or_is_rewritten(stack: Stack, *, rows: bool) -> None:
    """Compaction keeps borders of some ranges, so one file may have several."""
    topic = stack.topic()
    config = stack.config({topic: {"snapshot_retention": "0s"}})
    for start in range(0, 30, 10):
        produce(stack, topic, range(start, start + 10), day=0)
        archive_once(config)
    with Workshop.of(config) as shop:
        old = shop.files()
        objects = ObjectStore.of_table(shop.table.iceberg)
        spans = []
        for file in old:
            assert file.offsets is not None
            with FORMATS.of_path(file.path).open(objects, file.path) as reader:
                spans.append(
                    RecordSpan(
                        partition=0,
                        start_offset=file.offsets.low,
                        end_offset=file.offsets.high + 1,
                        rows=file.rows,
                        digest=reader.metadata.digest,
                    )
                )
        paths = tuple(file.path for file in old)
        made = NewFile(file=shop.written(paths, 0, 30), spans=tuple(spans))
        assert isinstance(shop.put(RewriteGroup(paths=paths, files=(made,))), Rewritten)
    assert [row[1:4] for row in ranges_of(config)] == [(n, n + 10, made.file.path) for n in (0, 10, 20)]
    tag(stack, config, topic, "kept")
    done = expire(config, topic, limits=RetireLimits(offset=10), rows=rows)
    assert done.succeeded, done
    begin = 10 if rows else 0
    assert (done.first_offsets, done.files, done.rewritten) == ({0: 10} if rows else {}, 0, int(rows))
    check(config, topic, from_kafka(stack, topic, 1)[begin:])
    assert expire(config, topic, limits=RetireLimits(offset=30)).first_offsets == {0: 30}
    with Workshop.of(config) as shop:
        kept = {file.paths: file for file in shop.registry.retention.retired_files(shop.topic)}
    assert (kept[made.file.path,].start_offset, kept[made.file.path,].end_offset) == (0, 30)
    assert erase_dry(config, topic, "partition = 0 and offset = 25").offsets == {0: 1}, "only the store has it"


def test_removed_files_stay_for_their_grace(stack: Stack) -> None:
    config, topic = archived(stack, snapshot_retention="2s")
    time.sleep(2.5)
    done = expire(config, topic, limits=RetireLimits(offset=10))
    assert (done.first_offsets, done.purged.deleted) == ({0: 10}, 0), "the head was what readers got until now"
    time.sleep(2.5)
    assert expire(config, topic, limits=RetireLimits(offset=10)).purged.deleted == 1


def test_landed_retirement_is_known_after_foreign_expiry(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    tag(stack, config, topic, "kept")
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", "after_commit:raise")
        assert isinstance(expire(config, topic, limits=RetireLimits(offset=10)).error, InjectedFault)
    table = table_of(stack, config, topic)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append():
        pass
    table.refresh()
    stays = {table.metadata.current_snapshot_id, *(ref.snapshot_id for ref in table.metadata.refs.values())}
    going = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in stays]
    table.maintenance.expire_snapshots().by_ids(going).commit()
    (settled,) = reconcile(load_config(config), [topic])
    assert settled.error is None
    with Workshop.of(config) as shop:
        assert shop.registry.retention.first_offsets(shop.topic) == {0: 10}
        assert shop.registry.rows.gone(shop.topic) == GoneRows(retired=10)
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
    check(config, topic, from_kafka(stack, topic, 1)[10:])


def test_rows_of_files_that_somebody_deleted_end(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    for start in range(0, 30, 10):
        produce(stack, topic, range(start, start + 10), day=0)
        archive_once(config)
    with Workshop.of(config) as shop:
        old = shop.files()
        objects = ObjectStore.of_table(shop.table.iceberg)
    Compact(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run()
    delete_object(objects, old[0].path)

    def known() -> set[str]:
        with psycopg.connect(load_config(config).registry.dsn) as connection:
            return {path for (path,) in connection.execute("SELECT path FROM files WHERE state = 'replaced'")}

    def clean() -> int:
        (done,) = Orphans(load_config(config), (topic,), deletes=True).run().topics
        assert done.succeeded
        return done.forgotten

    assert (clean(), known()) == (0, {file.path for file in old}), "they left the table a moment ago"
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("UPDATE files SET committed_at = now() - interval '31 days' WHERE state = 'replaced'")
    assert (clean(), known()) == (1, {file.path for file in old[1:]}), "the store has the others"
