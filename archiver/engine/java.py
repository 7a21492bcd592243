"""Spark's Java: 17 or 21, and its standard error."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from archiver.errors import ConfigError

SUPPORTED = (17, 21)
NOISE = (
    b"WARNING: Using incubator modules:",
    b"WARNING: package sun.security.action not in java.base",
    b"Using Spark's default log4j profile:",
    b"Setting default log level to",
    b"To adjust logging level use",
)
"""Prefixes of lines that an operator can't use. All other lines pass unchanged."""

_FRAMES = (b"\tat ", b"\t... ")
_LAST_LINES = 5
_SETTLE_SECONDS = 0.2
_WANTED = " or ".join(map(str, SUPPORTED))
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def require_java(environment: Mapping[str, str]) -> None:
    """Raises ConfigError unless Spark would start a supported Java."""
    found_java(environment)


def found_java(environment: Mapping[str, str]) -> tuple[Path, int]:
    """Return Spark's `java` and its version. Raises ConfigError."""
    java = find_java(environment)
    home = environment.get("JAVA_HOME")
    if java is None and home:
        on_path = shutil.which("java", path=environment.get("PATH"))
        otherwise = f"unset it, and Spark takes {on_path}" if on_path else "there is no other on PATH"
        raise ConfigError(
            f"JAVA_HOME leads to no Java: it has no bin/java. Point it at a Java {_WANTED}; or {otherwise}",
            JAVA_HOME=home,
        )
    if java is None:
        raise ConfigError(
            f"Spark needs Java {_WANTED} and none was found: JAVA_HOME is not set, and PATH has no `java`. Install one"
            " (Debian: apt-get install openjdk-17-jre-headless), or point JAVA_HOME at it"
        )
    version = version_of(java)
    if version not in SUPPORTED:
        raise ConfigError(
            f"Spark runs on Java {_WANTED}, and {'JAVA_HOME' if home else 'the first `java` on PATH'} is another:"
            " point JAVA_HOME at one of them",
            java=str(java),
            version=version if version is not None else "unknown",
        )
    return java, version


def find_java(environment: Mapping[str, str]) -> Path | None:
    """As Spark: in JAVA_HOME if set, else the first on PATH."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if java.is_file() else None
    path = shutil.which("java", path=environment.get("PATH"))
    return Path(path) if path else None


def version_of(java: Path) -> int | None:
    """The feature version: 17 for `17.0.15`, 8 for `1.8.0`."""
    try:
        return _asked_version(java, java.stat().st_mtime_ns)
    except OSError:
        return None


@functools.cache
def _asked_version(java: Path, _written_ns: int) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(report: str) -> int | None:
    match = _VERSION.search(report)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


@contextmanager
def filtered_children() -> Iterator[None]:
    """Lines are held back until the block ends. If it fails, the error gets the last ones as notes."""
    sys.stderr.flush()
    try:
        original = os.dup(2)
    except OSError:  # there is no standard error, so nothing to filter
        yield
        return
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    child = ChildLines(reader, original)
    try:
        yield
    except BaseException as error:
        for line in child.drop():
            error.add_note(line)
        raise
    else:
        child.release()
    finally:
        sys.stderr.flush()
        os.dup2(original, 2)


class ChildLines:
    def __init__(self, reader: int, target: int) -> None:
        self._reader = reader
        self._target = target
        self._lock = threading.Lock()
        self._held: list[bytes] | None = []
        self._dropped = False
        threading.Thread(target=self._forward, name="spark-stderr", daemon=True).start()

    def release(self) -> None:
        with self._lock, suppress(OSError):
            lines, self._held = self._held or [], None
            for line in lines:
                os.write(self._target, line)

    def drop(self) -> list[str]:
        time.sleep(_SETTLE_SECONDS)  # a process that just ended may have said why
        with self._lock:
            lines, self._held, self._dropped = self._held or [], None, True
        said = [line.decode(errors="replace").strip() for line in lines if not line.startswith(_FRAMES)]
        return [line for line in said if line][-_LAST_LINES:]

    def _forward(self) -> None:
        with os.fdopen(self._reader, "rb") as lines, suppress(OSError):
            for line in lines:
                if not line.startswith(NOISE):
                    self._take(line)
        os.close(self._target)

    def _take(self, line: bytes) -> None:
        with self._lock:
            if self._held is not None:
                self._held.append(line)
            elif not self._dropped:
                os.write(self._target, line)
