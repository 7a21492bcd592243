"""Apicurio Registry: 142 MB from Maven Central once, 3 s to start."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archiver.local.ports import choose
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server

VERSION = "2.6.13.Final"
NAME = "apicurio-registry-app"
API = "/apis/ccompat/v7"


@contextmanager
def apicurio(scratch: Path) -> Iterator[str]:
    home, port = fetched(f"{NAME}-{VERSION}", _unpack), choose(["schema-registry"])["schema-registry"]
    quarkus = ("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}", f"-Djava.io.tmpdir={scratch}")
    jar = next(home.glob("*-runner.jar"))
    url = f"http://127.0.0.1:{port}{API}"
    log = scratch / "apicurio.log"
    with java_server(*quarkus, "-jar", str(jar), probe=f"{url}/subjects", log=log, cwd=home):
        yield url


def _unpack(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        whole = Dependency(organisation="io.apicurio", name=NAME, revision=VERSION, classifier="all", kind="tar.gz")
        retrieve((whole,), Path(scratch))
        with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
