"""A server in Java, stopped even if the tests are killed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from archiver.local.java import Java, find_java
from tests.support.servers.guarded import guarded

_FRUGAL = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def java_server(
    *arguments: str,
    probe: str,
    log: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    java: Java | None = None,
) -> Iterator[None]:
    command = ((java or find_java()).executable, *_FRUGAL, *arguments)
    with guarded([str(value) for value in command], probe=probe, log=log, cwd=cwd, environment=environment):
        yield
