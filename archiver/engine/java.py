"""The Java that Spark would start, looked at before it is started.

Spark 4.1 runs on Java 17 and 21; on other versions it fails late and unclearly.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from archiver.errors import EngineError

SUPPORTED = (17, 21)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def require_java(environment: Mapping[str, str]) -> None:
    """Raise EngineError unless the Java that `environment` leads Spark to is one Spark runs on."""
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
    """The `java` of JAVA_HOME where that is set, else the first on PATH: Spark's own rule."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if java.is_file() else None
    found = shutil.which("java", path=environment.get("PATH"))
    return Path(found) if found else None


def version_of(java: Path) -> int | None:
    """The feature version (17 for `17.0.15`, 8 for `1.8.0`) that `java -version` reports; None if it says none."""
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
