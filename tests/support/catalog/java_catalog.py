"""Iceberg's own REST catalog in Java, over the stack's Postgres and S3: a second opinion beside the stack's catalog.

130 MB of jars, fetched from Maven Central once; 3 s to start. Java compiles the launcher as it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from archiver.local import Endpoints
from archiver.local.ports import choose
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server
from tests.support.servers.stack import Stack

VERSION = "1.11.0"
LAUNCHER = Path(__file__).parents[2] / "java" / "RestCatalog.java"
EACH_CATALOG = ("embedded", pytest.param("java", marks=pytest.mark.slow))
"""Parameters of a fixture that gives `stack_with` each: the stack's own catalog, and with the slow tests this one."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaEndpoints(Endpoints):
    """The stack's endpoints with this catalog, which asks nobody who they are, in place of its own."""

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        return {"uri": self.catalog_uri, "warehouse": self.warehouse, **self.s3_properties}


@contextmanager
def java_catalog(stack: Stack, scratch: Path) -> Iterator[Stack]:
    """The stack with the Java catalog, empty at first, and gone at the end, whatever kills this process."""
    port = choose(["java-catalog"])["java-catalog"]
    uri, warehouse = f"http://127.0.0.1:{port}", f"s3://{stack.bucket}/{scratch.name}"
    with java_server(
        "-cp",
        f"{fetched(f'iceberg-rest-{VERSION}', _fetch)}/*",
        str(LAUNCHER),
        str(port),
        probe=f"{uri}/v1/config",
        log=scratch / "java-catalog.log",
        environment=_settings(stack, warehouse),
    ):
        known = {each.name: getattr(stack.endpoints, each.name) for each in fields(Endpoints)}
        yield Stack(JavaEndpoints(**known | {"catalog_uri": uri, "warehouse": warehouse}), scratch)


@contextmanager
def stack_with(catalog: str, stack: Stack, folders: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack with one of `EACH_CATALOG`."""
    if catalog == "embedded":
        yield stack
    else:
        with java_catalog(stack, folders.mktemp("java-catalog")) as judged:
            yield judged


def _fetch(folder: Path) -> None:
    retrieve(_NEEDED, folder)
    retrieve((_ADAPTER,), folder)


def _settings(stack: Stack, warehouse: str) -> dict[str, str]:
    database = urlsplit(stack.database())
    properties = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:postgresql://{database.hostname}:{database.port}{database.path}",
        "jdbc.user": database.username or "",
        "jdbc.password": unquote(database.password or ""),
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": stack.endpoints.s3_region,
        **{name: value for name, value in stack.endpoints.s3_properties.items() if name != "s3.region"},
    }
    names = {name: name.upper().replace("-", "__").replace(".", "_") for name in properties}
    return {f"CATALOG_{names[name]}": value for name, value in properties.items()}
