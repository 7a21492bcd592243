"""Tables that share files (`gc.enabled = false`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import RESTError
from pyiceberg.table import StaticTable, Table
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import InjectedFault
from archiver.records.where import Where
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import TopicCompaction
from archiver.upkeep.erase import finishing
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.orphans import job as orphans_job
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import KeptFor, TopicOrphans
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.retire.cut import RetireLimits
from catalog.errors import FilesShared
from catalog.iceberg.append import prepare
from catalog.iceberg.expiry import SnapshotRetention
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import new_id
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.regrouping import Workshop
from tests.support.archive.retirements import DAY, expire, produce
from tests.support.catalog.foreign_writes import table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive as archive_process
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

SMALL = SnapshotRetention(seconds=0.0, keep=1, least=1, batch=1)
OLD = 9 * 86_400


def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {"snapshot_retention": "0s"}})
    for turn in range(3):
        produce(stack, topic, range(turn * 10, turn * 10 + 10), day=0)
        archive_once(config)
    return config, topic


def set_property(stack: Stack, config: Path, topic: str, **values: str) -> None:
    with table_of(stack, config, topic).transaction() as change:
        change.set_properties(values)


def forbid(stack: Stack, config: Path, topic: str, value: str = " FALSE ") -> None:
    set_property(stack, config, topic, **{"gc.enabled": value})


def second_table(stack: Stack, config: Path, topic: str) -> Table:
    """Register a table by the first one's metadata file.

    If a catalog registers none, pyiceberg opens that file.
    """
    first = table_of(stack, config, topic)
    name = f"{load_config(config).topic(topic).table}_copy"
    try:
        return stack.catalog().register_table(name, first.metadata_location)
    except (NotImplementedError, RESTError):
        return reopened(first)


def reopened(table: Table) -> Table:
    return StaticTable.from_metadata(table.metadata_location, dict(table.io.properties))


def contents(table: Table) -> dict[int, list[tuple[int, int, bytes]]]:
    by_snapshot: dict[int, list[tuple[int, int, bytes]]] = {}
    for snapshot in table.snapshots():
        rows = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().select(["kafka", "val"]).to_pylist()
        by_snapshot[snapshot.snapshot_id] = sorted(
            (row["kafka"]["partition"], row["kafka"]["offset"], row["val"]["__raw__"]) for row in rows
        )
    return by_snapshot


def objects(stack: Stack, config: Path, topic: str) -> set[str]:
    store = ObjectStore.of(load_config(config).catalog)
    return {file.path for file in store.list(table_of(stack, config, topic).location())}


def compact(config: Path, topic: str) -> TopicCompaction:
    (done,) = Compact(load_config(config), (topic,), wish=Wish(min_files=2), engine=InlineEngine).run().topics
    return done


def orphans(config: Path, topic: str, *, deletes: bool = True, later: float = OLD) -> TopicOrphans:
    (result,) = (
        Orphans(load_config(config), [topic], deletes=deletes, older_than=86_400.0, clock=lambda: time.time() + later)
        .run()
        .topics
    )
    assert result.error is None
    return result


def erase(config: Path, topic: str, where: str | None, **options: Any) -> EraseReport:
    return Erase(
        load_config(config),
        topic,
        None if where is None else Where.parse(where),
        options=EraseOptions(clock=lambda: time.time() + OLD, **options),
        engine=InlineEngine(),
    ).run()


def status(config: Path, form: str) -> str:
    return CliRunner().invoke(app, ["status", form, "--config", str(config)], env={"COLUMNS": "400"}).stdout


def housekeep(config: Path, topic: str, retention: SnapshotRetention = SMALL) -> int:
    with Workshop.of(config) as shop, TableCatalog(load_config(config).catalog) as catalog:
        return catalog.housekeep(catalog.require(shop.topic), retention)


def test_no_command_deletes_what_another_table_shares(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    compact(config, topic)
    second = second_table(stack, config, topic)
    before, rows = objects(stack, config, topic), contents(second)
    assert len(rows) == 4
    forbid(stack, config, topic)

    with pytest.raises(FilesShared, match=r"nothing was erased: the table property `gc\.enabled` is ` FALSE `"):
        erase(config, topic, "offset = 3 and partition = 0")
    with pytest.raises(FilesShared):
        erase(config, topic, None)
    assert len(table_of(stack, config, topic).snapshots()) == 4, "nothing was committed"
    for first in (30, 40):
        produce(stack, topic, range(first, first + 10), day=3)
        archive_once(config)
    with monkeypatch.context() as kill:
        kill.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert isinstance(compact(config, topic).error, InjectedFault)
    assert compact(config, topic).error is None
    assert housekeep(config, topic) == 0
    retired = expire(config, topic, limits=RetireLimits(offset=30))
    assert (retired.rows > 0, retired.purged.deleted, retired.purged.shared) == (True, 0, True)
    assert retired.succeeded
    retired = expire(config, topic, limits=RetireLimits(offset=35), rows=True)
    assert (retired.purged.deleted, len(retired.purged.left) > 0, retired.purged.shared) == (0, True, True)
    RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    result = orphans(config, topic)
    assert {item.path for item in result.deleted} & before == set()
    assert housekeep(config, topic) == 0

    assert before <= objects(stack, config, topic)
    assert contents(second) == rows
    assert contents(reopened(second)) == rows
    assert from_archive(config, topic, 1) == [item for item in from_kafka(stack, topic, 1) if item.offset >= 35]


def test_metadata_files_stay_too(stack: Stack) -> None:
    """A registered table begins with a metadata file of the first, which catalogs delete by another property."""
    config, topic = archived(stack)
    set_property(stack, config, topic, **{"write.metadata.previous-versions-max": "1"})
    forbid(stack, config, topic, "false")
    produce(stack, topic, range(100, 101), day=3)
    archive_once(config)
    before = objects(stack, config, topic)
    for number in range(4):
        produce(stack, topic, range(110 + number, 111 + number), day=4)
        archive_once(config)
    assert before <= objects(stack, config, topic)
    assert table_of(stack, config, topic).properties["write.metadata.delete-after-commit.enabled"] == "false"


def test_leftovers_of_attempts_go(stack: Stack) -> None:
    config, topic = archived(stack)
    config.write_text(config.read_text().replace("[archive]", '[archive]\norphan_grace = "0s"'))
    forbid(stack, config, topic, "false")
    before = objects(stack, config, topic)
    produce(stack, topic, range(30, 40), day=3)
    assert archive_process(config, "before_stage:kill").returncode == -9
    with Workshop.of(config) as shop:  # a commit that others overtook, and whose manifests nobody deleted
        lost = prepare(shop.table, [], change=None, commit_id=new_id())
    archive_once(config)
    named = objects(stack, config, topic)
    deleted = {file.path for file in orphans(config, topic).deleted}
    assert set(lost.written) <= deleted
    assert any(path.endswith(".parquet") for path in deleted)
    assert deleted & before == set()
    assert named - deleted <= objects(stack, config, topic)
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_expire_deletes_retired_files_once_the_owner_allows_it(stack: Stack) -> None:
    config, topic = archived(stack)
    forbid(stack, config, topic, "no")
    assert expire(config, topic, limits=RetireLimits(offset=20)).purged.shared
    set_property(stack, config, topic, **{"gc.enabled": "TRUE"})
    time.sleep(0.1)
    done = expire(config, topic, limits=RetireLimits(offset=20)).purged
    assert (done.shared, done.deleted > 0, done.left) == (False, True, ())


def test_property_set_between_erasure_commit_and_deletions(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    second = second_table(stack, config, topic)
    before, rows = objects(stack, config, topic), contents(second)
    purge: Callable[..., Any] = finishing.purge

    def late(*args: Any, **options: Any) -> Any:
        forbid(stack, config, topic)
        return purge(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(finishing, "purge", late)
        done = erase(config, topic, "offset = 3 and partition = 0")
    assert (done.rows, done.purged.shared, len(done.unfinished), done.succeeded) == (1, True, 1, False)
    with pytest.raises(FilesShared, match="nothing was erased"):
        erase(config, topic, None)
    assert before <= objects(stack, config, topic)
    assert contents(second) == rows
    (shown,) = json.loads(status(config, "--json"))["topics"]
    assert shown["open_erasures"][0]["settings"] == {"gc.enabled": " FALSE "}
    set_property(stack, config, topic, **{"gc.enabled": "true"})
    assert erase(config, topic, None).finished == done.unfinished


def test_property_set_while_orphans_are_searched(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    config, topic = archived(stack)
    compact(config, topic)
    table = table_of(stack, config, topic)
    for snapshot in table.snapshots()[:-1]:  # as another engine lets them expire
        table_of(stack, config, topic).maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    before = objects(stack, config, topic)
    assert len(orphans(config, topic, deletes=False).orphans) >= 3
    remove: Callable[..., Any] = orphans_job.remove_orphans

    def late(*args: Any, **options: Any) -> Any:
        forbid(stack, config, topic)
        return remove(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(orphans_job, "remove_orphans", late)
        result = orphans(config, topic)
    assert (result.deleted, len(result.shared) >= 3, result.kept[KeptFor.SHARED] >= 3) == ([], True, True)
    result = orphans(config, topic)
    assert (result.orphans, result.kept[KeptFor.SHARED] >= 3) == ((), True)
    assert before <= objects(stack, config, topic)


def test_erasure_asks_before_it_expires_what_the_owner_keeps(stack: Stack) -> None:
    config, topic = archived(stack)
    kept = "history.expire.min-snapshots-to-keep"
    set_property(stack, config, topic, **{kept: "500"})
    first = table_of(stack, config, topic).snapshots()
    asked: list[tuple[list[int], dict[str, str]]] = []

    def refuse(snapshots: Any, settings: Any) -> bool:
        asked.append(([snapshot.snapshot_id for snapshot in snapshots], dict(settings)))
        return False

    done = erase(config, topic, "offset = 3 and partition = 0", expires_owned=refuse)
    assert (done.rows, len(done.unfinished), done.succeeded) == (1, 1, False)
    assert asked == [([expired.snapshot_id for expired in first], {kept: "500"})]
    assert {expired.snapshot_id for expired in first} <= {
        snapshot.snapshot_id for snapshot in table_of(stack, config, topic).snapshots()
    }
    shown = json.loads(status(config, "--json"))["topics"][0]
    (waiting,) = shown["open_erasures"]
    assert waiting["settings"] == {kept: "500"}
    assert waiting["snapshots"] == asked[0][0]
    assert any("`history.expire.min-snapshots-to-keep` is 500" in remark for remark in shown["owner_remarks"])
    text = status(config, "--no-json")
    assert "--expire-protected-snapshots" in text
    done = erase(config, topic, None, expires_owned=lambda *_: True)
    assert (len(done.finished), done.succeeded) == (1, True)
    left = {snapshot.snapshot_id for snapshot in table_of(stack, config, topic).snapshots()}
    assert not left & {expired.snapshot_id for expired in first}


def test_expire_keeps_what_the_owner_keeps(stack: Stack) -> None:
    config, topic = archived(stack)
    set_property(stack, config, topic, **{"history.expire.max-snapshot-age-ms": str(DAY)})
    assert housekeep(config, topic) == 0
    done = expire(config, topic, limits=RetireLimits(offset=20)).purged
    assert (done.deleted, done.snapshots.going, len(done.snapshots.owned)) == (0, (), 3)
    set_property(stack, config, topic, **{"history.expire.max-snapshot-age-ms": "1"})
    done = expire(config, topic, limits=RetireLimits(offset=20)).purged
    assert (done.deleted, done.left) == (2, ())
