"""Project Nessie's REST catalog: fetched from Maven Central once (245 MB), ready in 8 to 23 s.

It keeps tables in memory, and vends no credentials: clients have their own. Needs Java 21.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.local.java import installed
from archiver.local.ports import choose
from tests.support.catalog.open_endpoints import with_catalog
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server
from tests.support.servers.minio_server import MinioServer
from tests.support.servers.stack import Stack
from tests.support.storage.stores import BUCKET, Store

VERSION = "0.99.0"
_OLDEST_JAVA = 21
_WHOLE = Dependency(
    organisation="org.projectnessie.nessie", name="nessie-quarkus", revision=VERSION, classifier="runner"
)
_S3 = "nessie.catalog.service.s3.default-options"


@contextmanager
def nessie(stack: Stack, scratch: Path, server: MinioServer, store: Store) -> Iterator[Stack]:
    """The stack with a Nessie whose warehouse is in the bucket. Clients have the keys of `store`.

    Settings: projectnessie.org/nessie-latest/configuration.
    """
    java = max((java for java in installed() if java.major >= _OLDEST_JAVA), key=lambda java: java.major, default=None)
    if java is None:
        pytest.skip(f"Nessie {VERSION} needs Java {_OLDEST_JAVA}, and there is none")
    ports = choose(["nessie", "nessie-management"])
    uri = f"http://127.0.0.1:{ports['nessie']}/iceberg"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(ports["nessie"]),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(ports["nessie-management"]),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{BUCKET}/",
        f"{_S3}.endpoint": server.endpoint,
        f"{_S3}.region": server.properties["s3.region"],
        f"{_S3}.path-style-access": "true",
        f"{_S3}.request-signing-enabled": "false",
        f"{_S3}.access-key": "urn:nessie-secret:quarkus:minio",
        "minio.name": server.access_key,
        "minio.secret": server.secret_key,
    }
    jar = next(fetched(f"nessie-{VERSION}", lambda folder: retrieve((_WHOLE,), folder)).glob("*.jar"))
    options = [f"-D{name}={value}" for name, value in settings.items()]
    log = scratch / "nessie.log"
    with java_server(*options, "-jar", str(jar), probe=f"{uri}/v1/config", log=log, java=java):
        yield with_catalog(stack, scratch, uri, "lake", store.properties)
