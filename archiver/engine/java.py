"""The Java process that Spark starts: checks its version first, and filters its standard error.

Spark 4.1 runs on Java 17 and 21. On other versions it fails late and with unclear errors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from archiver.errors import EngineError

SUPPORTED = (17, 21)
NOISE = (
    b"WARNING: Using incubator modules:",
    b"WARNING: package sun.security.action not in java.base",
    b"Using Spark's default log4j profile:",
    b"Setting default log level to",
    b"To adjust logging level use",
)
"""How lines begin that tell an operator nothing. All other lines pass unchanged."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def require_java(environment: Mapping[str, str]) -> None:
    """Raise EngineError unless Spark runs on the Java that it would start in this environment."""
    java = find_java(environment)
    if java is None:
        raise EngineError("Spark needs Java 17 and none was found; install it, or point JAVA_HOME at it")
    version = version_of(java)
    if version not in SUPPORTED:
        raise EngineError(
            "Spark runs on Java 17 or 21; point JAVA_HOME at one of them",
            java=str(java),
            version=version if version is not None else "unknown",
        )


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The `java` of JAVA_HOME if that is set, else the first on PATH. This is Spark's own rule."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if java.is_file() else None
    found = shutil.which("java", path=environment.get("PATH"))
    return Path(found) if found else None


def version_of(java: Path) -> int | None:
    """The feature version (17 for `17.0.15`, 8 for `1.8.0`) that `java -version` reports. None if it reports none."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(report: str) -> int | None:
    """The feature version in the text of `java -version`."""
    found = _VERSION.search(report)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


@contextmanager
def filtered_children() -> Iterator[None]:
    """Give child processes that start inside the block a standard error that drops `NOISE`.

    A process keeps the file descriptor that it starts with, so the filter lasts until its end. Our own standard error
    is as before afterwards.
    """
    sys.stderr.flush()
    try:
        original = os.dup(2)
    except OSError:  # there is no standard error, so nothing to filter
        yield
        return
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_forward, args=(reader, original), name="spark-stderr", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(original, 2)


def _forward(reader: int, target: int) -> None:
    with os.fdopen(reader, "rb") as lines, suppress(OSError):
        for line in lines:
            if not line.startswith(NOISE):
                os.write(target, line)
    os.close(target)
