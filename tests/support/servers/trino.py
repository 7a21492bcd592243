"""Trino with the stack's catalog as `lake`: 821 MB from Maven Central once, 20 s to start.

Needs Java 24 or newer and a heap of 1 GB. As a program it only fetches Trino.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trino.dbapi import Connection, connect
from trino.exceptions import TrinoConnectionError, TrinoQueryError

from archiver.local.java import Java, installed
from archiver.local.ports import choose
from tests.support.servers.fetched import Dependency, fetched, retrieve
from tests.support.servers.java_server import java_server
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

VERSION = "476"
SIZE = 821_045_832
CATALOG = "lake"
_OLDEST_JAVA = 24
_PLUGINS = ("iceberg", "exchange-filesystem")
_SECONDS = 120.0
_JVM = (
    "-Xmx1g",
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+EnableDynamicAgentLoading",
    "-Djdk.attach.allowAttachSelf=true",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trino:
    port: int

    def connect(self, **options: Any) -> Connection:
        return connect(host="127.0.0.1", port=self.port, user="tests", catalog=CATALOG, timezone="UTC", **options)

    def rows(self, statement: str) -> list[list[Any]]:
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


@contextmanager
def trino(stack: Stack, scratch: Path, catalog: Mapping[str, str] | None = None) -> Iterator[Trino]:
    """Skips the test without a new Java."""
    java = newest_java()
    if java is None:
        pytest.skip(f"Trino {VERSION} needs Java {_OLDEST_JAVA} or newer, and none was found on this machine")
    home, port = trino_home(), choose(["trino"])["trino"]
    scratch.mkdir(parents=True, exist_ok=True)
    config = _written(scratch / "config.properties", _server(home, scratch, port))
    _written(scratch / "catalog" / f"{CATALOG}.properties", catalog_properties(stack) | dict(catalog or {}))
    log = scratch / "trino.log"
    with java_server(
        *(*_JVM, "-cp", f"{home}/lib/*", f"-Dconfig={config}", "io.trino.server.TrinoServer"),
        probe=f"http://127.0.0.1:{port}/v1/info",
        log=log,
        cwd=scratch,
        java=java,
    ):
        server = Trino(port=port)
        _wait(server, log)
        yield server


def newest_java() -> Java | None:
    fits = [java for java in installed() if java.major >= _OLDEST_JAVA]
    return max(fits, key=lambda java: java.major, default=None)


def trino_home() -> Path:
    return fetched(f"trino-{VERSION}", _unpack)


def _unpack(folder: Path) -> None:
    whole = Dependency(organisation="io.trino", name="trino-server", revision=VERSION, kind="tar.gz")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        retrieve((whole,), Path(scratch), progress=_Progress())
        with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
            archive.extractall(scratch, filter="data")
        # Jars that plugins share are hard links: all have to be unpacked before most of them can go.
        (home,) = (path for path in Path(scratch).iterdir() if path.is_dir())
        (folder / "plugin").mkdir()
        shutil.move(home / "lib", folder / "lib")
        for plugin in _PLUGINS:
            shutil.move(home / "plugin" / plugin, folder / "plugin" / plugin)


class _Progress:
    def __init__(self) -> None:
        self._told = -1

    def __call__(self, size: int) -> None:
        step = 100 if sys.stderr.isatty() else 10
        done = min(size * step // SIZE, step)
        if done > self._told:
            self._told = done
            end = "\r" if sys.stderr.isatty() and done < step else "\n"
            sys.stderr.write(f"fetching Trino {VERSION}, once: {min(size, SIZE) // 10**6} of {SIZE // 10**6} MB{end}")
            sys.stderr.flush()


def _server(home: Path, scratch: Path, port: int) -> dict[str, str]:
    return {
        "node.environment": "tests",
        "node.id": "tests",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "plugin.dir": f"{home}/plugin",
        "catalog.config-dir": f"{scratch}/catalog",
    }


def catalog_properties(stack: Stack) -> dict[str, str]:
    local = stack.endpoints
    events = stack.catalog_properties
    asks_who = {
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.credential": events.get("credential", ""),
        "iceberg.rest-catalog.oauth2.server-uri": events.get("oauth2-server-uri", ""),
    }
    return {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": events["uri"],
        "iceberg.rest-catalog.warehouse": events["warehouse"],
        **(asks_who if "credential" in events else {}),
        "fs.native-s3.enabled": "true",
        "s3.endpoint": local.s3_endpoint,
        "s3.region": local.s3_region,
        "s3.path-style-access": "true",
        "s3.aws-access-key": local.access_key,
        "s3.aws-secret-key": local.secret_key,
    }


def _written(path: Path, properties: Mapping[str, str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    path.chmod(0o600)
    return path


def _wait(server: Trino, log: Path) -> None:
    def is_ready() -> bool:
        server.rows(f"SHOW SCHEMAS FROM {CATALOG}")
        return bool(server.rows("SELECT node_id FROM system.runtime.nodes WHERE state = 'active'"))

    eventually(
        is_ready,
        lambda: f"Trino: {log.read_text(errors='replace')[-2000:]}",
        seconds=_SECONDS,
        every=0.2,
        despite=(TrinoQueryError, TrinoConnectionError),
    )


if __name__ == "__main__":
    if newest_java() is None:
        sys.stderr.write(f"Trino {VERSION} is left out: it needs Java {_OLDEST_JAVA} or newer, and none was found\n")
    else:
        trino_home()
