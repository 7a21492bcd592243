from __future__ import annotations

from pathlib import Path

import pytest

from archiver.engine.java import find_java, parse_version, require_java
from archiver.errors import ConfigError


@pytest.mark.parametrize(
    ("report", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_432"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_feature_version_is_read_from_the_report(report: str, version: int | None):
    assert parse_version(report) == version


def test_no_java_is_a_clear_error(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"needs Java 17 or 21 and none was found: JAVA_HOME is not set"):
        require_java({"PATH": str(tmp_path)})


@pytest.mark.parametrize("on_path", [True, False])
def test_a_java_home_without_java_is_named_as_such(tmp_path: Path, on_path: bool):
    path = tmp_path / "bin"
    path.mkdir()
    java = _fake_java(path, "17.0.1") if on_path else None
    with pytest.raises(ConfigError, match="JAVA_HOME leads to no Java") as raised:
        require_java({"PATH": str(path), "JAVA_HOME": "/nowhere"})
    assert raised.value.context == {"JAVA_HOME": "/nowhere"}
    assert (f"Spark takes {java}" in raised.value.message) is on_path


def test_java_home_goes_before_the_path(tmp_path: Path):
    java = _fake_java(tmp_path / "jdk" / "bin", "25.0.1")
    _fake_java(tmp_path / "other", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": str(tmp_path / "other")}
    assert find_java(environment) == java
    with pytest.raises(ConfigError, match=r"JAVA_HOME is another.*version=25"):
        require_java(environment)


def test_java_17_is_taken(tmp_path: Path):
    _fake_java(tmp_path, "17.0.1")
    require_java({"PATH": str(tmp_path)})


def _fake_java(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java
