"""Iceberg's own REST catalog in Java, over the stack's Postgres and S3: a second opinion beside the stack's catalog.

130 MB of jars, fetched from Maven Central once; 3 s to start. Java compiles the launcher as it starts.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests

from archiver.local import Endpoints
from archiver.local.java import find_java
from archiver.local.maven import IVY_SETTINGS, _ivy_jar, cache_root
from archiver.local.ports import choose
from tests.stack import Stack

VERSION = "1.11.0"
PATIENCE_S = 60.0
LAUNCHER = Path(__file__).parent / "java" / "RestCatalog.java"
_IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="archiver" module="{module}"/><configurations><conf name="default"/></configurations>
<dependencies>{dependencies}</dependencies></ivy-module>"""
_WITH_DEPENDENCIES = (
    ("org.apache.iceberg", "iceberg-core", VERSION),
    ("org.apache.iceberg", "iceberg-aws", VERSION),
    ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.0"),
)
_ALONE = (
    ("org.apache.iceberg", "iceberg-aws-bundle", VERSION),
    ("org.postgresql", "postgresql", "42.7.8"),
    ("org.apache.hadoop", "hadoop-client-api", "3.4.2"),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.2"),
)


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
    warehouse = f"s3://{stack.bucket}/{scratch.name}"
    command = [find_java().executable, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{_jars()}/*", str(LAUNCHER), str(port)]
    log = scratch / "java-catalog.log"
    with log.open("wb") as output:
        environment = os.environ | _settings(stack, warehouse)
        server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output)
    uri = f"http://127.0.0.1:{port}"
    try:
        _wait(uri, server, log)
        known = {each.name: getattr(stack.endpoints, each.name) for each in fields(Endpoints)}
        yield Stack(JavaEndpoints(**known | {"catalog_uri": uri, "warehouse": warehouse}), scratch)
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


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


def _wait(uri: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if requests.get(f"{uri}/v1/config", timeout=5).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"the Java catalog did not start: {log.read_text(errors='replace')[-2000:]}")


def _jars() -> Path:
    """The folder with its jars, fetched now if need be; processes wait for the one that fetches."""
    folder = cache_root() / f"iceberg-rest-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
            try:
                _fetch(fresh, "catalog", _dependencies())
                # Ivy gives one artifact of a module in a run: the adapter lies in the jar of the core's tests.
                _fetch(fresh, "adapter", _dependency("org.apache.iceberg", "iceberg-core", VERSION, classifier="tests"))
                (fresh / "jars").rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _dependencies() -> str:
    return "".join(
        [
            *(_dependency(*each, conf="default->default") for each in _WITH_DEPENDENCIES),
            *(_dependency(*each) for each in _ALONE),
        ]
    )


def _dependency(
    organisation: str, name: str, revision: str, *, conf: str = "default->master", classifier: str | None = None
) -> str:
    head = f'<dependency org="{organisation}" name="{name}" rev="{revision}" conf="{conf}"'
    if classifier is None:
        return f"{head}/>"
    return f'{head}><artifact name="{name}" type="jar" ext="jar" m:classifier="{classifier}"/></dependency>'


def _fetch(folder: Path, module: str, dependencies: str) -> None:
    file = folder / f"{module}.xml"
    file.write_text(_IVY.format(module=module, dependencies=dependencies))
    command = [find_java().executable, "-jar", str(_ivy_jar()), "-cache", str(folder / module), "-ivy", str(file)]
    if settings := os.environ.get(IVY_SETTINGS):
        command += ["-settings", settings]
    target = f"{folder}/jars/[artifact]-[revision](-[classifier]).[ext]"
    subprocess.run(
        [*command, "-confs", "default", "-types", "jar", "bundle", "-retrieve", target],
        check=True,
        capture_output=True,
        timeout=900,
    )
