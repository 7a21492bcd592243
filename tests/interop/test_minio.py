"""S3 with versions, locks and damage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from minio import Minio
from minio.commonconfig import COMPLIANCE
from minio.objectlockconfig import DAYS, ObjectLockConfig
from minio.versioningconfig import ENABLED, VersioningConfig

from archiver.config import load_config
from archiver.errors import StorageDenied, StorageError
from archiver.storage.objects import ObjectStore
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import OrphansReport
from catalog.model import new_id
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.java_catalog import java_catalog
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.minio_server import MinioServer, minio_server
from tests.support.servers.stack import Stack, unique
from tests.support.storage.spoiling_proxy import spoiling_proxy
from tests.support.storage.stores import minio_store

pytestmark = [pytest.mark.integration, pytest.mark.interop]

LATER = 2 * 3600.0


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    with minio_server(tmp_path_factory.mktemp("minio")) as server:
        yield server


@pytest.fixture
def client(minio: MinioServer) -> Minio:
    return minio.client()


class Archived:
    def __init__(self, stack: Stack, server: MinioServer, bucket: str) -> None:
        self.stack, self.bucket = stack, bucket
        self.topic = stack.topic()
        self.config = stack.config(
            {self.topic: {}}, archive={"journal": f"s3://{bucket}/_archiver", "orphan_grace": "0s"}
        )
        self.archive()
        self.objects = ObjectStore.of(server.properties)
        self.orphan = self._orphan()

    def archive(self) -> None:
        self.stack.produce(self.topic, *({"value": b"%d" % n} for n in range(20)))
        archive_once(self.config, self.topic, engine=InlineEngine())

    def _orphan(self) -> str:
        files = [entry for entry in self.objects.list(f"s3://{self.bucket}") if entry.path.endswith(".parquet")]
        path = f"{files[0].path.rpartition('-')[0]}-{new_id().lower()}.parquet"
        self.objects.write(path, self.objects.read(files[0].path))
        return path

    def remove_orphans(self, config: Path | None = None) -> OrphansReport:
        return Orphans(load_config(config or self.config), (), deletes=True, clock=lambda: time.time() + LATER).run()

    def is_whole(self) -> bool:
        return from_archive(self.config, self.topic, 1) == from_kafka(self.stack, self.topic, 1)

    def versions(self, client: Minio, path: str) -> list[bool]:
        name = path.removeprefix(f"s3://{self.bucket}/")
        listed = client.list_objects(self.bucket, prefix=name, include_version=True, recursive=True)
        return sorted(version.is_delete_marker for version in listed)


@pytest.fixture(params=["versioned", "locked"])
def archived(
    request: pytest.FixtureRequest, stack: Stack, minio: MinioServer, client: Minio, tmp_path: Path
) -> Iterator[Archived]:
    bucket = unique(request.param).replace("_", "-")
    client.make_bucket(bucket, object_lock=request.param == "locked")
    if request.param == "locked":
        client.set_object_lock_config(bucket, ObjectLockConfig(COMPLIANCE, 1, DAYS))
    else:
        client.set_bucket_versioning(bucket, VersioningConfig(ENABLED))
    with java_catalog(stack, tmp_path, minio_store(minio, bucket)) as judged:
        yield Archived(judged, minio, bucket)


def test_where_versions_stay_an_orphan_is_hidden_and_not_gone(archived: Archived, client: Minio) -> None:
    """A removal puts a delete marker on top; bytes stay, and cost, until a rule ends them."""
    report = archived.remove_orphans()
    assert [entry.path for entry in report.topics[0].deleted] == [archived.orphan]
    assert not report.topics[0].failures
    assert not archived.objects.exists(archived.orphan)
    assert archived.versions(client, archived.orphan) == [False, True]
    assert archived.remove_orphans().topics[0].orphans == ()
    archived.archive()
    assert archived.is_whole()


def test_who_may_not_delete_is_told_so_and_loses_nothing(stack: Stack, minio: MinioServer, tmp_path: Path) -> None:
    bucket = unique("kept").replace("_", "-")
    minio.client().make_bucket(bucket)
    server = minio.limited({"Action": ["s3:DeleteObject"], "Resource": [f"arn:aws:s3:::{bucket}/*"]})
    with java_catalog(stack, tmp_path, minio_store(server, bucket)) as judged:
        archived = Archived(judged, server, bucket)
        ((path, failure),) = archived.remove_orphans().topics[0].failures.items()
        assert path == archived.orphan
        assert isinstance(failure, StorageDenied)
        assert archived.objects.exists(archived.orphan)
        archived.archive()
        assert archived.is_whole()


@pytest.mark.parametrize("size", [1_000, 12_000_000])
def test_bytes_changed_on_the_way_are_refused(minio: MinioServer, client: Minio, tmp_path: Path, size: int) -> None:
    """Also bytes of a part: an upload of 12 MB has several."""
    bucket = unique("spoilt").replace("_", "-")
    client.make_bucket(bucket)
    file = SpoolFile.create(tmp_path / "spooled")
    with file.sink() as sink:
        sink.write(bytes(range(250)) * (size // 250))
    with spoiling_proxy(minio.endpoint) as proxy:
        objects = ObjectStore.of(minio.properties | {"s3.endpoint": proxy.endpoint}, attempts=1)
        proxy.spoil = lambda body: body.replace(b"\x10\x11\x12", b"\x10\x11\x13", 1)
        with pytest.raises(StorageError):
            objects.upload(file, f"s3://{bucket}/x")
        assert list(client.list_objects(bucket)) == []
        proxy.spoil = bytes
        assert objects.upload(file, f"s3://{bucket}/x") == file.size
        assert client.get_object(bucket, "x").data == bytes(range(250)) * (size // 250)
    parts = [upload for upload in proxy.uploads if "x-amz-decoded-content-length" in upload]
    assert parts
    assert {part["x-amz-trailer"] for part in parts} == {"x-amz-checksum-crc64nvme"}


def test_a_store_that_is_busy_is_asked_again(minio: MinioServer, client: Minio, tmp_path: Path) -> None:
    bucket = unique("busy").replace("_", "-")
    client.make_bucket(bucket)
    with spoiling_proxy(minio.endpoint) as proxy:
        objects = ObjectStore.of(minio.properties | {"s3.endpoint": proxy.endpoint})
        proxy.refusals = 3
        objects.write(f"s3://{bucket}/x", b"here")
        assert proxy.refusals == 0
        assert objects.read(f"s3://{bucket}/x") == b"here"
