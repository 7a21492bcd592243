"""Java's class data archive."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pyspark
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
    (result,) = java.parent.glob(f"cache/*/{FOLDER}")
    return result


def options(java: Path, version: int = 17, **settings: str) -> list[str]:
    options = class_archive_options(java, version, {f"spark.driver.{key}": value for key, value in settings.items()})
    return [item for item in options if not item.startswith("-Xlog")]


def written_by(java: Path) -> Path:
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
    other_java = java.with_name("other")
    other_java.touch()
    written_by(other_java)
    assert len({item.stem for item in folder(java).glob("*.seen")}) == 2


def test_other_jars_have_their_own(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "spark" / "jars" / "core.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"classes")
    monkeypatch.setattr("archiver.engine.class_archive.spark_folders", lambda: (str(tmp_path / "spark"),))
    written_by(java)
    make_old(jar, 60)  # Java refuses an archive of a jar with another time, so it has to be written again
    written_by(java)


def test_archives_that_no_start_asks_for_are_removed(java: Path) -> None:
    written_by(java).write_bytes(COMPLETE)
    make_old(next(folder(java).glob("*.seen")), 31 * 24 * 3600)
    other_java = java.with_name("other")
    other_java.touch()
    assert options(other_java) == []
    (left,) = folder(java).iterdir()
    assert left.suffix == ".seen"


def test_java_says_nothing_of_an_archive_it_cannot_use(java: Path) -> None:
    if (result := shutil.which("java")) is None:
        pytest.skip("Java isn't on the path")
    (jar,) = Path(pyspark.__path__[0], "jars").glob("py4j-*.jar")
    archive, moved = java.with_name("classes.jsa"), java.with_name("moved.jar")
    shutil.copy(jar, moved)
    quiet = [option for option in class_archive_options(java, 21, {}) if option.startswith("-Xlog")]

    def said(*options: str | Path, jar: Path) -> str:
        command = [result, *options, "-cp", jar, "py4j.GatewayServer", "--help"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "usage" in ended.stdout + ended.stderr
        return "".join(line for line in (ended.stdout + ended.stderr).splitlines() if "usage" not in line)

    said(f"-XX:ArchiveClassesAtExit={archive}", jar=jar)
    assert "Unable to use shared archive" in said(f"-XX:SharedArchiveFile={archive}", jar=moved)
    assert said(f"-XX:SharedArchiveFile={archive}", *quiet, jar=moved) == ""


def test_newer_java_keeps_it_itself(java: Path) -> None:
    assert [option.partition("=")[0] for option in options(java, 21)] == [
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
