"""Apicurio Registry, a schema registry that others wrote: fetched from Maven Central once, started for a test session.

142 MB to fetch, 3 s to start, nothing on disk but its own files in the cache of the embedded stack.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from archiver.local.java import find_java
from archiver.local.maven import IVY_SETTINGS, _ivy_jar, cache_root
from archiver.local.ports import choose

VERSION = "2.6.13.Final"
NAME = "apicurio-registry-app"
API = "/apis/ccompat/v7"
PATIENCE_S = 120.0
_GUARD = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
server.terminate()
server.wait()
"""
_IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="archiver" module="tests"/><configurations><conf name="default"/></configurations>
<dependencies><dependency org="io.apicurio" name="{name}" rev="{version}" conf="default->master" transitive="false">
<artifact name="{name}" type="tar.gz" ext="tar.gz" m:classifier="all"/></dependency></dependencies></ivy-module>"""


@contextmanager
def apicurio(scratch: Path) -> Iterator[str]:
    """A registry with nothing in it; gives its url, stops it at the end, whatever kills this process."""
    home, port = _unpacked(), choose(["schema-registry"])["schema-registry"]
    java = [find_java().executable, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    quarkus = ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}", f"-Djava.io.tmpdir={scratch}"]
    jar = next(home.glob("*-runner.jar"))
    log = scratch / "apicurio.log"
    with log.open("wb") as output:
        command = [sys.executable, "-c", _GUARD, *java, *quarkus, "-jar", str(jar)]
        server = subprocess.Popen(command, cwd=home, stdin=subprocess.PIPE, stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}{API}"
    try:
        _wait(url, server, log)
        yield url
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if requests.get(f"{url}/subjects", timeout=5).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"the schema registry did not start: {log.read_text(errors='replace')[-2000:]}")


def _unpacked() -> Path:
    """The folder with its jars, fetched now if need be; processes wait for the one that fetches."""
    folder = cache_root() / f"{NAME}-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
            try:
                _fetch(fresh)
                with tarfile.open(next(fresh.glob("*.tar.gz"))) as archive:
                    archive.extractall(fresh / "home", filter="data")
                (fresh / "home").rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _fetch(folder: Path) -> None:
    module = folder / "ivy.xml"
    module.write_text(_IVY.format(name=NAME, version=VERSION))
    command = [find_java().executable, "-jar", str(_ivy_jar()), "-cache", str(folder / "cache"), "-ivy", str(module)]
    if settings := os.environ.get(IVY_SETTINGS):
        command += ["-settings", settings]
    retrieve = ["-confs", "default", "-types", "tar.gz", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    subprocess.run([*command, *retrieve], check=True, capture_output=True, timeout=600)
