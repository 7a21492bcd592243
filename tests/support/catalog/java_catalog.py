"""Iceberg's REST catalog in Java: 130 MB from Maven Central once, 3 s to start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from archiver.local.ports import choose
from tests.support.catalog.open_endpoints import with_catalog
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server
from tests.support.servers.stack import Stack
from tests.support.storage.stores import Store, seaweedfs_store

VERSION = "1.11.0"
LAUNCHER = Path(__file__).parents[2] / "java" / "RestCatalog.java"
_CORE = Dependency(organisation="org.apache.iceberg", name="iceberg-core", revision=VERSION, with_needs=True)
_NEEDED = (
    _CORE,
    Dependency(organisation="org.apache.iceberg", name="iceberg-aws", revision=VERSION, with_needs=True),
    Dependency(organisation="org.eclipse.jetty.ee10", name="jetty-ee10-servlet", revision="12.1.0", with_needs=True),
    Dependency(organisation="org.apache.iceberg", name="iceberg-aws-bundle", revision=VERSION),
    Dependency(organisation="org.postgresql", name="postgresql", revision="42.7.8"),
    Dependency(organisation="org.apache.hadoop", name="hadoop-client-api", revision="3.4.2"),
    Dependency(organisation="org.apache.hadoop", name="hadoop-client-runtime", revision="3.4.2"),
)
_ADAPTER = replace(_CORE, with_needs=False, classifier="tests")
"""The REST adapter lies in the jar of the core's tests."""


@contextmanager
def java_catalog(stack: Stack, scratch: Path, store: Store | None = None) -> Iterator[Stack]:
    store = store or seaweedfs_store(stack)
    port = choose(["java-catalog"])["java-catalog"]
    uri, warehouse = f"http://127.0.0.1:{port}", f"{store.root}/{scratch.name}"
    jars = [fetched(f"iceberg-rest-{VERSION}", _fetch), *store.jars()]
    with java_server(
        "-cp",
        ":".join(f"{jar}/*" for jar in jars),
        str(LAUNCHER),
        str(port),
        probe=f"{uri}/v1/config",
        log=scratch / "java-catalog.log",
        environment=_settings(stack, warehouse, store.catalog),
    ):
        yield with_catalog(stack, scratch, uri, warehouse, store.properties)


def _fetch(folder: Path) -> None:
    retrieve(_NEEDED, folder)
    retrieve((_ADAPTER,), folder)


def _settings(stack: Stack, warehouse: str, storage: Mapping[str, str]) -> dict[str, str]:
    database = urlsplit(stack.database())
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:postgresql://{database.hostname}:{database.port}{database.path}",
        "jdbc.user": database.username or "",
        "jdbc.password": unquote(database.password or ""),
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        **storage,
    }
    names = {name: name.upper().replace("-", "__").replace(".", "_") for name in properties}
    return {f"CATALOG_{names[name]}": value for name, value in properties.items()}
