"""The archive of Java's classes: who writes it, when it gets its name, and when there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from archiver.engine.class_archive import FOLDER, class_archive_options

COMPLETE = bytes.fromhex("a8ab0bf0") + b"classes"


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = tmp_path / "java"
    java.touch()
    return java


def folder(java: Path) -> Path:
    (found,) = java.parent.glob(f"cache/*/{FOLDER}")
    return found


def options(java: Path, version: int = 17, **settings: str) -> list[str]:
    """The options but those that keep Java quiet."""
    found = class_archive_options(java, version, {f"spark.driver.{key}": value for key, value in settings.items()})
    return [each for each in found if not each.startswith("-Xlog")]


def written_by(java: Path) -> Path:
    """Where the second start's JVM is told to write."""
    assert options(java) == [], "a first start writes nothing"
    (option,) = options(java)
    name, _, path = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    assert options(java) == [], "one writes, the others start as ever"
    return Path(path)


def make_old(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_second_start_writes_and_later_ones_use_it(java: Path) -> None:
    writing = written_by(java)
    writing.write_bytes(COMPLETE)
    assert options(java) == [], "it may still be written"
    make_old(writing, 31)
    (option,) = options(java)
    archive = Path(option.removeprefix("-XX:SharedArchiveFile="))
    assert archive.read_bytes() == COMPLETE
    assert not writing.exists()
    assert options(java) == [option]


def test_what_a_killed_jvm_left_is_removed_and_written_again(java: Path) -> None:
    writing = written_by(java)
    writing.write_bytes(bytes(len(COMPLETE)))
    make_old(writing, 31)
    assert options(java) == [], "another may write meanwhile"
    assert not writing.exists()
    (claim,) = folder(java).glob("*.claim")
    make_old(claim, 601)
    assert "ArchiveClassesAtExit" in options(java)[0]


def test_another_java_has_its_own(java: Path) -> None:
    written_by(java)
    other = java.with_name("other")
    other.touch()
    written_by(other)
    assert len({each.stem for each in folder(java).glob("*.seen")}) == 2


def test_newer_java_keeps_it_itself(java: Path) -> None:
    assert [each.partition("=")[0] for each in options(java, 21)] == [
        "-XX:+AutoCreateSharedArchive",
        "-XX:SharedArchiveFile",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"extraJavaOptions": "-Xshare:off"},
        {"extraJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"},
        {"extraClassPath": "/mine.jar"},
    ],
)
def test_who_chooses_is_left_alone(java: Path, settings: dict[str, str]) -> None:
    assert options(java, 21, **settings) == []


def test_a_home_that_cannot_be_written_has_none(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(java))  # a file, so no folder can be made in it
    assert options(java, 21) == []
