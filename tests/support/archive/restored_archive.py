"""A kept archive on restored servers.

Buckets and keys are the same, as metadata has whole paths. Tables are added by the API of S3 Tables: SeaweedFS' REST
`register` forgets the table's UUID, and then refuses commits.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs
import requests
from minio.credentials import Credentials
from minio.signer import sign_v4_s3

from archiver.local.postgres_binaries import binaries
from tests.support.archive.kept_archive import KeptArchive
from tests.support.servers.embedded import embedded
from tests.support.servers.stack import Stack

_BUCKET = "arn:aws:s3tables:us-east-1:000000000000:bucket/tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredArchive:
    kept: KeptArchive
    stack: Stack

    def database(self) -> str:
        dsn = self.stack.database()
        command = [str(binaries() / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", "--no-psqlrc", f"--dbname={dsn}"]
        subprocess.run(command, input=self.kept.registry(), stdout=subprocess.DEVNULL, check=True)
        return dsn

    def config(self, dsn: str, **serve: Any) -> Path:
        about = self.kept.about
        config = self.stack.config(
            about["topics"],
            registry={"dsn": dsn},
            archive={"journal": about["journal"]},
            serve=about["serve"] | serve,
        )
        for proto in self.kept.protos:
            shutil.copy(proto, config.parent)
        return config

    def reset_objects(self) -> None:
        objects, store = self.kept.objects(), _store(self.stack)
        for name, table in self.kept.about["tables"].items():
            assert self.stack.catalog().load_table(name).metadata_location == table["metadata"]
        for folder in ("tables/kafka", self.kept.about["journal"].removeprefix("s3://")):
            for info in store.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True)):
                if info.type == pyarrow.fs.FileType.File and info.path not in objects:
                    store.delete_file(info.path)
        _write(store, objects)


@contextmanager
def restored(kept: KeptArchive, folder: Path) -> Iterator[RestoredArchive]:
    kept.unpack_broker(folder / "stack" / "kafka" / "data")
    with embedded(folder / "stack") as local:
        stack = Stack(local.up(), folder)
        _restore_tables(kept, stack)
        yield RestoredArchive(kept=kept, stack=stack)


def _restore_tables(kept: KeptArchive, stack: Stack) -> None:
    catalog, objects = stack.catalog(), kept.objects()
    catalog.create_namespace("kafka")
    _write(_store(stack), objects)
    for name, table in kept.about["tables"].items():
        metadata = json.loads(objects[table["metadata"].removeprefix("s3://")])
        _add_to_catalog(stack, name, table["metadata"], metadata)
        loaded = catalog.load_table(name)
        assert (str(loaded.metadata.table_uuid), loaded.metadata_location) == (table["uuid"], table["metadata"])


def _store(stack: Stack) -> pyarrow.fs.S3FileSystem:
    return pyarrow.fs.S3FileSystem(
        endpoint_override=stack.s3_endpoint,
        access_key=stack.access_key,
        secret_key=stack.secret_key,
        region=stack.endpoints.s3_region,
    )


def _write(store: pyarrow.fs.S3FileSystem, objects: Mapping[str, bytes]) -> None:
    for path, data in objects.items():
        with store.open_output_stream(path) as stream:
            stream.write(data)


def _add_to_catalog(stack: Stack, name: str, location: str, metadata: dict[str, Any]) -> None:
    namespace, _, table = name.partition(".")
    body = json.dumps(
        {
            "tableBucketARN": _BUCKET,
            "namespace": [namespace],
            "name": table,
            "format": "ICEBERG",
            "metadata": {"iceberg": {"tableUuid": metadata["table-uuid"]}, "fullMetadata": metadata},
            "metadataVersion": int(location.rpartition("/v")[2].partition(".")[0]),
            "metadataLocation": location,
        }
    ).encode()
    url, now, digest = urlsplit(f"{stack.s3_endpoint}/"), datetime.now(UTC), hashlib.sha256(body).hexdigest()
    headers = {
        "Host": url.netloc,
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "S3Tables.CreateTable",
        "x-amz-content-sha256": digest,
        "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
    }
    signed = sign_v4_s3(
        method="POST",
        url=url,
        region=stack.endpoints.s3_region,
        headers=headers,
        credentials=Credentials(stack.access_key, stack.secret_key),
        content_sha256=digest,
        date=now,
    )
    requests.post(url.geturl(), data=body, headers=signed, timeout=30).raise_for_status()
