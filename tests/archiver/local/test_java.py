"""Java is found by version."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.errors import LocalStackError
from archiver.local import java


def fake_java(home: Path, report: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{report}' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(java, "_INSTALLED", ())
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return monkeypatch


def test_java_home_comes_first(tmp_path: Path, nowhere: pytest.MonkeyPatch):
    home = fake_java(tmp_path / "mine", 'openjdk version "17.0.15" 2025-04-15')
    other_java = fake_java(tmp_path / "other", 'openjdk version "21.0.1"')
    nowhere.setenv("JAVA_HOME", str(home))
    nowhere.setenv("PATH", f"{other_java / 'bin'}:/bin:/usr/bin")
    result = java.find_java()
    assert (result.home, result.major) == (home, 17)
    assert result.executable == str(home / "bin" / "java")


def test_one_that_does_not_fit_is_passed_over(tmp_path: Path, nowhere: pytest.MonkeyPatch):
    nowhere.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", 'java version "1.8.0_402"')))
    fitting = fake_java(tmp_path / "fitting", 'openjdk version "17.0.1"')
    nowhere.setenv("PATH", f"{fitting / 'bin'}:/bin:/usr/bin")
    assert java.find_java().home == fitting


def test_none_that_fits_lists_what_is_there(tmp_path: Path, nowhere: pytest.MonkeyPatch):
    home = fake_java(tmp_path / "old", 'java version "1.8.0_402"')
    nowhere.setenv("JAVA_HOME", str(home))
    nowhere.setenv("PATH", "/bin:/usr/bin" if not Path("/bin/java").exists() else "/nonexistent")
    with pytest.raises(LocalStackError, match=r"version 8.*openjdk-17"):
        java.find_java()


def test_none_at_all(nowhere: pytest.MonkeyPatch):
    with pytest.raises(LocalStackError, match="found none"):
        java.find_java()
