"""Trails in a bucket with Object Lock."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from minio.commonconfig import COMPLIANCE
from minio.error import S3Error
from minio.objectlockconfig import YEARS, ObjectLockConfig

from archiver.audit.folder import PackLimits, TrailFolder
from archiver.audit.trails import FoundTrail
from archiver.storage.objects import ObjectStore
from tests.support.archive.audit_trails import Written, acts
from tests.support.servers.minio_server import minio_server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
"""MinIO is compiled once, which takes minutes. Nothing else waits for more than a minute."""

BUCKET = "journal"
PREFIX = "audit/kafka.orders/one/"


def test_a_locked_bucket_keeps_every_version_of_a_trail(tmp_path: Path) -> None:
    with minio_server(tmp_path) as server:
        client = server.client()
        client.make_bucket(BUCKET, object_lock=True)
        client.set_object_lock_config(BUCKET, ObjectLockConfig(COMPLIANCE, 7, YEARS))
        path, objects = f"s3://{BUCKET}/{PREFIX[:-1]}", ObjectStore.of(server.properties)
        folder = TrailFolder(path=path, objects=objects, limits=PackLimits(least=4))
        written = Written.begin(tmp_path / "made")
        written.stored = folder
        written.add(*acts(12))
        written.sign()
        assert folder.pack(through=9) == 9

        public = written.signing.public
        assert FoundTrail(folder=folder).check([public]).is_whole
        versions = [
            entry for entry in client.list_objects(BUCKET, PREFIX, include_version=True) if not entry.is_delete_marker
        ]
        assert len([version for version in versions if "/entry-" in str(version.object_name)]) == 12
        for version in versions:
            assert version.object_name is not None
            with pytest.raises(S3Error) as refused:
                client.remove_object(BUCKET, version.object_name, version_id=version.version_id)
            assert refused.value.code in {"AccessDenied", "ObjectLocked", "InvalidRequest", "MethodNotAllowed"}

        last = f"{PREFIX}entry-0000000012.json"
        (locked,) = client.list_objects(BUCKET, last, include_version=True)
        folder.objects.write(f"s3://{BUCKET}/{last}", b"{}")
        assert not FoundTrail(folder=folder).check([public]).is_whole
        with closing(client.get_object(BUCKET, last, version_id=locked.version_id)) as answer:
            before = answer.data
        folder.objects.write(f"s3://{BUCKET}/{last}", before)
        assert FoundTrail(folder=folder).check([public]).is_whole
