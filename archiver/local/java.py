"""Finds a Java. `python -m archiver.local.java` prints its home."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from archiver.engine.java import SUPPORTED, version_of
from archiver.errors import LocalStackError

_INSTALLED = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """`major` is the feature version (17, 21, …)."""

    home: Path
    major: int

    @property
    def executable(self) -> str:
        return str(self.home / "bin" / "java")


def find_java() -> Java:
    """Find a Java for Spark: JAVA_HOME, then PATH, then the system's folders. Raises LocalStackError."""
    seen: list[str] = []
    for home in _candidates():
        major = _major(home)
        if major in SUPPORTED:
            return Java(home=home, major=major)
        seen.append(f"{home} ({f'version {major}' if major else 'does not run'})")
    runtimes = f"found only {', '.join(seen)}" if seen else "found none"
    raise LocalStackError(
        f"Kafka and Spark need Java {' or '.join(map(str, SUPPORTED))}, {runtimes}. Install one (Debian: apt-get "
        f"install openjdk-17-jre-headless; macOS: brew install openjdk@17) or point JAVA_HOME to it"
    )


def installed() -> Iterator[Java]:
    for home in _candidates():
        major = _major(home)
        if major is not None:
            yield Java(home=home, major=major)


def _candidates() -> Iterator[Path]:
    seen: set[Path] = set()
    for home in _places():
        resolved = home.resolve()
        if resolved not in seen and (resolved / "bin" / "java").exists():
            seen.add(resolved)
            yield resolved


def _places() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for pattern in _INSTALLED:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))


@functools.cache
def _major(home: Path) -> int | None:
    return version_of(home / "bin" / "java")


def main() -> int:
    try:
        java = find_java()
    except LocalStackError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
