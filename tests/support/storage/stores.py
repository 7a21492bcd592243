"""Stores for tables, with properties for clients and Java."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers.azurite import ACCOUNT, KEY, azurite
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.gcs_server import gcs_server
from tests.support.servers.minio_server import MinioServer, minio_server
from tests.support.servers.stack import Stack

BUCKET = "lake"
_ICEBERG = "org.apache.iceberg"
_GCP = (
    Dependency(organisation=_ICEBERG, name="iceberg-gcp", revision="1.11.0"),
    Dependency(organisation=_ICEBERG, name="iceberg-gcp-bundle", revision="1.11.0"),
)
_AZURE = (
    Dependency(organisation=_ICEBERG, name="iceberg-azure", revision="1.11.0"),
    Dependency(organisation=_ICEBERG, name="iceberg-azure-bundle", revision="1.10.0"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """`properties` are for pyiceberg's FileIO, `catalog` for Java with `jars`."""

    name: str
    root: str
    properties: Mapping[str, str] = field(repr=False)
    catalog: Mapping[str, str] = field(repr=False)
    jars: Callable[[], tuple[Path, ...]] = tuple

    @property
    def journal(self) -> str:
        return f"{self.root}/_archiver"


def seaweedfs_store(stack: Stack) -> Store:
    return _s3("seaweedfs", stack.bucket, stack.endpoints.s3_properties)


def minio_store(server: MinioServer, bucket: str) -> Store:
    return _s3("minio", bucket, server.properties)


@contextmanager
def store_of(name: str, stack: Stack, scratch: Path) -> Iterator[Store]:
    """All but seaweedfs are empty."""
    match name:
        case "seaweedfs":
            yield seaweedfs_store(stack)
        case "minio":
            with minio_server(scratch) as server:
                server.client().make_bucket(BUCKET)
                yield minio_store(server, BUCKET)
        case "files":
            root = (scratch / BUCKET).as_uri()
            yield Store(name=name, root=root, properties={}, catalog={"io-impl": f"{_ICEBERG}.hadoop.HadoopFileIO"})
        case "gcs":
            with gcs_server(scratch, BUCKET) as address:
                yield _gcs(address)
        case "azure":
            with azurite(scratch, BUCKET) as authority:
                yield _azure(authority)
        case _:
            raise ValueError(name)


def _s3(name: str, bucket: str, properties: Mapping[str, str]) -> Store:
    catalog = {
        "io-impl": f"{_ICEBERG}.aws.s3.S3FileIO",
        "client.region": properties["s3.region"],
        **{key: value for key, value in properties.items() if key != "s3.region"},
    }
    return Store(name=name, root=f"s3://{bucket}", properties=properties, catalog=catalog)


def _gcs(address: str) -> Store:
    token = {"gcs.oauth2.token": "any", "gcs.oauth2.token-expires-at": str(int(time.time() + 86_400) * 1_000)}
    return Store(
        name="gcs",
        root=f"gs://{BUCKET}",
        properties={"gcs.service.host": address, **token},
        catalog={"io-impl": f"{_ICEBERG}.gcp.gcs.GCSFileIO", "gcs.service.host": address, "gcs.no-auth": "true"},
        jars=lambda: (fetched("iceberg-gcp-1.11.0", lambda folder: retrieve(_GCP, folder)),),
    )


def _azure(authority: str) -> Store:
    host = f"{ACCOUNT}.dfs.core.windows.net"
    return Store(
        name="azure",
        root=f"abfss://{BUCKET}@{host}",
        properties={
            "adls.account-name": ACCOUNT,
            "adls.account-key": KEY,
            "adls.blob-storage-authority": authority,
            "adls.dfs-storage-authority": authority,
            "adls.blob-storage-scheme": "http",
            "adls.dfs-storage-scheme": "http",
        },
        catalog={
            "io-impl": f"{_ICEBERG}.azure.adlsv2.ADLSFileIO",
            f"adls.connection-string.{host}": f"http://{authority}/{ACCOUNT}",
            "adls.auth.shared-key.account.name": ACCOUNT,
            "adls.auth.shared-key.account.key": KEY,
        },
        jars=lambda: (fetched("iceberg-azure-1.11.0", lambda folder: retrieve(_AZURE, folder)),),
    )
