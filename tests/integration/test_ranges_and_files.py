"""Many-to-many ranges and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ulid import ULID

from archiver.commit.find_holes import search
from archiver.config import load_config
from archiver.errors import InjectedFault
from archiver.storage.objects import ObjectStore
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.rebuild.unreferenced import LeftFor
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate
from catalog.errors import RewriteRefused
from catalog.iceberg.rewrite_commit import Rewritten
from catalog.model import FileState, TranslatedRange, new_id
from catalog.ranges.holes import GoneRows
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from tests.support.archive.job_runs import archive_once, run, without_registry
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.archive.regrouping import Workshop, retired
from tests.support.catalog.foreign_writes import compact, delete_rows
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration

START = 1_767_225_600_000


def produce(stack: Stack, topic: str, numbers: range) -> None:
    stack.produce(topic, *({"key": b"k%d" % n, "value": b"%d" % n, "timestamp": START + n} for n in numbers))


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    for start in (0, 10, 20):
        produce(stack, topic, range(start, start + 10))
        archive_once(config)
    return config, topic


def rows_of(config: Path) -> list[tuple[Any, ...]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        return connection.execute(
            "SELECT start_offset, end_offset, part, parts, path, rows, digest, expected_rows, erased_rows,"
            " retired_rows, id, commit_id FROM files WHERE state = 'committed' ORDER BY start_offset, part"
        ).fetchall()


def check(stack: Stack, config: Path, topic: str, *, records: list[Seen] | None = None) -> None:
    expected = from_kafka(stack, topic, 1) if records is None else records
    assert from_archive(config, topic, 1) == expected
    with Workshop.of(config) as shop:
        assert search(shop.table, shop.registry.rows.expected_ranges(shop.topic), shop.table.first_offsets) == ()
        assert shop.registry.files.pending(shop.topic) == ()
        assert shop.registry.rewrites.unfinished(shop.topic) == ()


@pytest.mark.parametrize("fault", [None, "before_commit", "after_commit"])
def test_three_files_become_two(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        group = shop.merged(shop.files(), (0, 15), (15, 30))
        if fault is None:
            assert isinstance(shop.put(group), Rewritten)
        else:
            with monkeypatch.context() as kill:
                kill.setenv("ARCHIVER_FAULT", f"{fault}:raise")
                with pytest.raises(InjectedFault):
                    shop.put(group)
        (done,) = reconcile(load_config(config), [topic])
        assert done.error is None
        if fault == "before_commit":
            assert len(shop.registry.rewrites.unfinished(shop.topic)) == 1, "it may still land"
            assert isinstance(shop.put(shop.merged(shop.files(), (0, 15), (15, 30))), Rewritten)
            reconcile(load_config(config), [topic])
        assert [file.rows for file in shop.files()] == [15, 15]
        counts = shop.registry.files.counts(shop.topic)
        assert (counts[FileState.COMMITTED].ranges, counts[FileState.REPLACED].ranges) == (2, 3)
    check(stack, config, topic)
    before = rows_of(config)
    assert [row[:6] for row in before] == [(0, 15, 0, 1, before[0][4], 15), (15, 30, 0, 1, before[1][4], 15)]
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        lineage = connection.execute(
            "SELECT old.start_offset, made.start_offset FROM files AS old JOIN files AS made"
            " ON made.commit_id = old.replaced_by AND made.partition = old.partition"
            " AND made.start_offset < old.end_offset AND old.start_offset < made.end_offset"
            " WHERE old.state = 'replaced' ORDER BY 1, 2"
        ).fetchall()
    assert lineage == [(0, 0), (10, 0), (10, 15), (20, 15)]
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert rows_of(fresh) == before
    bare = without_registry(stack, config, with_journal=False)
    Rebuild(load_config(bare), [topic]).run()
    assert [row[:-1] for row in rows_of(bare)] == [row[:-1] for row in before], "all but the commit"
    produce(stack, topic, range(30, 35))
    archive_once(bare)
    check(stack, bare, topic)


def test_rewrite_that_loses_a_record_is_refused(archived: tuple[Path, str]) -> None:
    config, _ = archived
    with Workshop.of(config) as shop:
        snapshot = shop.table.snapshot_id
        short = shop.merged(shop.files(), (0, 15), (15, 29))
        with pytest.raises(RewriteRefused, match="account for all records") as caught:
            shop.put(short)
        assert (caught.value.context["old_rows"], caught.value.context["new_rows"]) == (30, 29)
        rewrite = shop.merged(shop.files(), (0, 15), (15, 30))
        wrong = replace(rewrite.files[1].spans[0], start_offset=14)
        with pytest.raises(RewriteRefused, match="very offsets") as caught:
            shop.put(replace(rewrite, files=(rewrite.files[0], replace(rewrite.files[1], spans=(wrong,)))))
        assert caught.value.context["offsets"] == "[0, 30)"
        assert shop.table.snapshot_id == snapshot
        assert shop.registry.rewrites.unfinished(shop.topic) == ()


@pytest.mark.parametrize("fault", [None, "after_commit"])
def test_retired_records_are_gone_and_not_missed(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        old = shop.files()[:2]
        spans = tuple(retired(file, start, start + 10) for file, start in zip(old, (0, 10), strict=True))
        group = RewriteGroup(paths=tuple(file.path for file in old), emptied=spans, why="older than a year")
        if fault is None:
            assert isinstance(shop.put(group, reason="retention"), Rewritten)
        else:
            monkeypatch.setenv("ARCHIVER_FAULT", f"{fault}:raise")
            with pytest.raises(InjectedFault):
                shop.put(group, reason="retention")
            monkeypatch.delenv("ARCHIVER_FAULT")
            (done,) = reconcile(load_config(config), [topic])
            assert done.error is None
        assert shop.registry.rows.gone(shop.topic) == GoneRows(retired=20)
        summary = shop.table.iceberg.metadata.snapshots[-1].summary
        assert summary is not None
        assert summary.additional_properties["archiver.retired-rows"] == "20"
    produce(stack, topic, range(30, 35))
    archive_once(config)
    left = [record for record in from_kafka(stack, topic, 1) if record.offset >= 20]
    check(stack, config, topic, records=left)
    before = rows_of(config)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert rows_of(fresh) == before
    check(stack, fresh, topic, records=left)


@pytest.mark.parametrize("is_there", [True, False])
def test_records_are_retired_only_once_the_table_lacks_them(
    stack: Stack, archived: tuple[Path, str], is_there: bool
) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        old = shop.files()[0]
        group = RewriteGroup(paths=(old.path,), emptied=(retired(old, 0, 10),), why="older than a year")
        long_ago = str(ULID.from_timestamp(1.0))
        rewrite = Rewrite(commit_id=long_ago, reason="retention", schema_version=1, groups=(group,))
        shop.registry.rewrites.begin(shop.topic, rewrite)
        if is_there:
            compact(stack, config, topic)
        else:
            delete_rows(stack, config, topic, 0, range(10))
        (done,) = reconcile(load_config(config), [topic])
        assert done.error is None
        assert shop.registry.rewrites.unfinished(shop.topic) == ()
        assert shop.registry.rows.gone(shop.topic) == GoneRows(retired=0 if is_there else 10)
    check(stack, config, topic, records=from_kafka(stack, topic, 1)[0 if is_there else 10 :])


def split_range(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, TranslatedRange]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    produce(stack, topic, range(10))
    archive_once(config)
    produce(stack, topic, range(10, 20))
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    with Workshop.of(config) as shop:
        (range_,) = shop.registry.files.pending(shop.topic)
        assert range_.file is not None
        source, range_id = range_.file.path, new_id()
        halves = tuple(
            shop.written([source], 10, 20, keep=keep, files=2, range_id=range_id)
            for keep in (lambda offsets: offsets % 2 == 0, lambda offsets: offsets % 2 == 1)
        )
        shop.registry.files.reject(shop.topic, [range_.id], reason="a test splits it")
        delete_object(ObjectStore.of_table(shop.table.iceberg), source)
        made = replace(range_, id=range_id, files=halves)
        assert made.digest == range_.digest
        assert shop.registry.files.stage(shop.topic, [made], table_offsets=shop.table.offsets).accepted == (made,)
        assert shop.registry.files.pending(shop.topic) == (made,)
    return config, topic, made


def is_committed(config: Path) -> None:
    assert [row[:4] for row in rows_of(config)] == [(0, 10, 0, 1), (10, 20, 0, 2), (10, 20, 1, 2)]


@pytest.mark.parametrize("fault", ["before_commit", "after_commit"])
def test_range_in_several_files_is_committed_once_through_kills(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    config, topic, made = split_range(stack, monkeypatch)
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", f"{fault}:raise")
        assert not run(config).succeeded
    archive_once(config)
    is_committed(config)
    check(stack, config, topic)
    with Workshop.of(config) as shop:
        assert [file.rows for file in shop.files()] == [10, 5, 5]
        (_, range_) = shop.registry.rows.expected_ranges(shop.topic)
        assert (range_.rows, range_.digest, len(range_.files)) == (10, made.digest, 2)
    for with_journal in (True, False):
        again = without_registry(stack, config, with_journal=with_journal)
        Rebuild(load_config(again), [topic]).run()
        assert [row[:9] for row in rows_of(again)] == [row[:9] for row in rows_of(config)]
        archive_once(again)
        check(stack, again, topic)


def take_away(config: Path, path: str) -> Callable[[], None]:
    objects = ObjectStore.of(load_config(config).catalog)
    data = objects.read(path)
    delete_object(objects, path)
    return lambda: objects.write(path, data)


def test_a_range_waits_for_all_its_files(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, made = split_range(stack, monkeypatch)
    put_back = take_away(config, made.files[1].path)
    (done,) = reconcile(load_config(config), [topic])
    assert done.error is not None
    assert set(done.error.context["files"]) == {file.path for file in made.files}
    assert len(from_archive(config, topic, 1)) == 10
    with Workshop.of(config) as shop:
        assert shop.registry.files.counts(shop.topic)[FileState.UPLOADED].ranges == 0
        assert shop.registry.missing.load(shop.topic) == (made,)
        put_back()
        (done,) = reconcile(load_config(config), [topic])
        assert (done.error, done.landed) == (None, 1)
    is_committed(config)
    check(stack, config, topic)


def test_a_part_that_is_forgotten_makes_no_smaller_range(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file and its row are lost: the other alone must not pass for the range."""
    config, topic, made = split_range(stack, monkeypatch)
    take_away(config, made.files[1].path)
    reconcile(load_config(config), [topic])
    with Workshop.of(config) as shop:
        gone = {made.files[1].path: ""}
        with shop.registry.claims.nothing_staged(shop.topic, gone) as still:
            still.forget_deleted(gone)
        assert shop.registry.missing.load(shop.topic) == ()
    archive_once(config)
    check(stack, config, topic)


def test_files_that_are_found_again_are_staged_only_together(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic, made = split_range(stack, monkeypatch)
    put_back = take_away(config, made.files[0].path)
    fresh = without_registry(stack, config, with_journal=True)
    (done,) = Rebuild(load_config(fresh), [topic]).run()
    assert done.staged == 0
    assert [(file.path, file.reason) for file in done.left] == [(made.files[1].path, LeftFor.FILES)]
    put_back()
    (done,) = Rebuild(load_config(fresh), [topic]).run()
    assert (done.staged, done.left) == (1, ())
    archive_once(fresh)
    is_committed(fresh)
    check(stack, fresh, topic)


def test_accepted_losses_of_rewritten_files_survive_a_rebuild(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    with Workshop.of(config) as shop:
        assert isinstance(shop.put(shop.merged(shop.files(), (0, 15), (15, 30))), Rewritten)
    delete_rows(stack, config, topic, 0, (3, 4))
    report = RefillJob(load_config(config), topic, accept_removed=True, engine=InlineEngine()).run()
    assert report.rows(Fate.ERASED) == 2
    left = [record for record in from_kafka(stack, topic, 1) if record.offset not in {3, 4}]
    check(stack, config, topic, records=left)
    before = rows_of(config)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert rows_of(fresh) == before
    with Workshop.of(fresh) as shop:
        assert shop.registry.rows.gone(shop.topic) == GoneRows(erased=2)
    check(stack, fresh, topic, records=left)
