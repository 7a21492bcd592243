"""An archive in each store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyiceberg.table import Table

from archiver.config import load_config
from archiver.errors import ObjectMissing
from archiver.storage.objects import ObjectStore
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from catalog.errors import RolledBack
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.iceberg.rest import connect
from catalog.model import new_id
from tests.support.archive.job_runs import archive_once, schema
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.foreign_writes import set_main
from tests.support.catalog.java_catalog import java_catalog
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive as archive_process
from tests.support.servers.stack import Stack
from tests.support.storage.stores import Store, store_of

pytestmark = [pytest.mark.integration, pytest.mark.interop]

STORES = ("seaweedfs", "minio", "files", "gcs", "azure")
PARTITIONS = 2
LATER = 2 * 3600.0
"""So much further on is the clock by which files are old enough."""


class Place(NamedTuple):
    store: Store
    stack: Stack

    def config(self, topic: str, **keys: Any) -> Path:
        return self.stack.config({topic: keys}, archive={"journal": self.store.journal, "orphan_grace": "0s"})

    def produce(self, topic: str, turn: int) -> None:
        records = (
            {"key": b"%d" % n, "value": b"\x0a\x04%04d" % (turn * 100 + n), "partition": n % PARTITIONS}
            for n in range(40)
        )
        self.stack.produce(topic, *records)

    def table(self, config: Path, topic: str) -> Table:
        """Use the archiver's client: pyiceberg's doesn't open locations in Azure."""
        return connect(self.stack.catalog_properties, timeout_seconds=60).load_table(
            load_config(config).topic(topic).table
        )

    def same(self, config: Path, topic: str) -> bool:
        return from_archive(config, topic, PARTITIONS) == from_kafka(self.stack, topic, PARTITIONS)


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp(request.param)
    with store_of(request.param, stack, folder) as store, java_catalog(stack, folder, store) as judged:
        yield Place(store, judged)


def spooled(path: Path, data: bytes) -> SpoolFile:
    file = SpoolFile.create(path)
    with file.sink() as sink:
        sink.write(data)
    return file


def test_objects_go_in_and_come_back(place: Place, tmp_path: Path):
    """The large one takes several parts, or blocks."""
    objects, root = ObjectStore.of(place.store.properties), f"{place.store.root}/objects"
    large = bytes(range(256)) * 150_000
    assert objects.upload(spooled(tmp_path / "x", large), f"{root}/a/b/large.parquet") == len(large)
    objects.write(f"{root}/a/small", b"1")
    objects.write(f"{root}/a/small", b"22")
    assert objects.read(f"{root}/a/b/large.parquet") == large
    assert objects.read(f"{root}/a/small") == b"22"
    with objects.open(f"{root}/a/b/large.parquet") as stream:
        stream.seek(-300, 2)
        assert stream.read(7) == large[-300:-293]
    expected = {f"{root}/a/b/large.parquet": len(large), f"{root}/a/small": 2}
    assert {entry.path: entry.size for entry in objects.list(root)} == expected
    assert {entry.path: entry.size for part in objects.walk(root) for entry in part} == expected
    assert {entry.path for part in objects.walk(f"{root}/a") for entry in part} == expected.keys()
    assert all(abs(entry.modified_ms / 1_000 - time.time()) < 120 for entry in objects.list(root) if entry.modified_ms)
    assert all(entry.modified_ms for entry in objects.list(root))
    assert objects.list(f"{root}/none") == ()
    objects.delete(f"{root}/a/small", OwnFolder(root))
    objects.delete(f"{root}/a/small", OwnFolder(root))
    assert not objects.exists(f"{root}/a/small")
    with pytest.raises(ObjectMissing, match="small"):
        objects.read(f"{root}/a/small")
    assert objects.exists(f"{root}/a/b/large.parquet")


def test_an_archive_comes_back_byte_for_byte(place: Place, tmp_path: Path):
    topic = place.stack.topic(PARTITIONS)
    config = place.config(topic, value=schema(tmp_path, "string name = 1;"))
    place.produce(topic, 0)
    archive_once(config, topic, engine=InlineEngine())
    schema(tmp_path, "string name = 1; int64 amount = 2;")
    place.produce(topic, 1)
    archive_once(config, topic, engine=InlineEngine())
    assert place.same(config, topic)
    table = place.table(config, topic)
    assert all(task.file.file_path.startswith(place.store.root) for task in table.scan().plan_files())
    names = table.scan().to_arrow().column("val").to_pylist()
    assert sorted(name["name"] for name in names) == [f"{turn:02d}{n:02d}" for turn in (0, 1) for n in range(40)]

    text = config.read_text().replace(load_config(config).registry.dsn, place.stack.database())
    fresh = config.with_name("rebuilt.toml")
    fresh.write_text(text)
    (rebuilt,) = Rebuild(load_config(fresh), [topic]).run()
    assert rebuilt.topic == topic
    place.produce(topic, 2)
    archive_once(fresh, topic, engine=InlineEngine())
    assert place.same(fresh, topic)


def test_orphans_are_found_and_nothing_else_is(place: Place):
    topic = place.stack.topic(PARTITIONS)
    config = place.config(topic)
    place.produce(topic, 0)
    archive_once(config, topic, engine=InlineEngine())
    place.produce(topic, 1)
    assert archive_process(config, "before_stage:kill").returncode == -9
    archive_once(config, topic, engine=InlineEngine())
    needed = {task.file.file_path for task in place.table(config, topic).scan().plan_files()}
    objects = ObjectStore.of(place.store.properties)

    def files() -> set[str]:
        entries = objects.list(place.table(config, topic).location())
        return {entry.path for entry in entries if entry.path.endswith(".parquet")}

    left = files() - needed
    assert left
    begun = f"{min(left).rpartition('-')[0]}-{new_id().lower()}.parquet"
    objects.write(begun, b"")  # which an upload that was killed leaves in some stores
    report = Orphans(load_config(config), (), deletes=True, clock=lambda: time.time() + LATER).run()
    assert {entry.path for entry in report.topics[0].deleted} >= {begun, *left}
    assert not report.topics[0].failures
    assert files() == needed
    assert place.same(config, topic)


def test_records_that_others_took_out_come_back(place: Place):
    topic = place.stack.topic(PARTITIONS)
    config = place.config(topic)
    for turn in range(2):
        place.produce(topic, turn)
        archive_once(config, topic, engine=InlineEngine())
    first = place.table(config, topic).metadata.snapshots[0].snapshot_id
    set_main(place.stack, config, topic, first)
    with pytest.raises(RolledBack):
        place.same(config, topic)
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.succeeded, report
    assert report.commit_id
    assert place.same(config, topic)
