"""The Java that Kafka and Spark run on: found in JAVA_HOME, on PATH or where systems install it, and checked.

Run as a program (`python -m archiver.local.java`), it prints the home it chose, or says what to install.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import LocalStackError

MINIMUM = 17
BELOW = 25
"""Spark 4.1 runs on 17 to 24: it fails on 25."""

_INSTALLED = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")
_VERSION = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime that was run and gave its version."""

    home: Path
    version: str
    major: int

    @property
    def executable(self) -> str:
        """The path of its `java`."""
        return str(self.home / "bin" / "java")


def major_of(version: str) -> int:
    """The feature release of a version as `java -version` writes it: `17.0.15` is 17, `1.8.0_402` is 8."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return 0
    if numbers[0] == "1" and len(numbers) > 1:
        return int(numbers[1])
    return int(numbers[0])


def find_java(*, minimum: int = MINIMUM, below: int = BELOW) -> Java:
    """The first Java of a fitting version: JAVA_HOME before PATH before what is installed on the system.

    Raises LocalStackError that lists what was found instead and how to get one.
    """
    seen: list[str] = []
    for home in _candidates():
        java = _probe(home)
        if java is not None and minimum <= java.major < below:
            return java
        seen.append(f"{home} ({java.version if java else 'does not run'})")
    found = f"found only {', '.join(seen)}" if seen else "found none"
    raise LocalStackError(
        f"Kafka and Spark need Java {minimum} to {below - 1}, {found}. Install one (Debian: apt-get install "
        f"openjdk-17-jre-headless; macOS: brew install openjdk@17) or point JAVA_HOME to it"
    )


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
def _probe(home: Path) -> Java | None:
    command = [str(home / "bin" / "java"), "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return None
    return Java(home=home, version=match[1], major=major_of(match[1]))


def main() -> int:
    """Print the Java home chosen; 1 and the reason on stderr where there is none."""
    try:
        java = find_java()
    except LocalStackError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
