"""The jar cache; a fake Java stands for Ivy."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from archiver.cache_folder import CACHE_NAME
from archiver.errors import LocalStackError
from archiver.local import maven
from archiver.local.java import Java
from archiver.local.maven import Artifact

ARTIFACTS = (Artifact(organisation="org.example", name="thing", revision="1.0"),)
FETCHES = r"""#!/bin/sh
echo run >> "$COUNTER_FILE"
sleep 0.2
for word in "$@"; do
  case "$word" in */\[artifact\]*) folder=${word%/*} ;; esac
done
echo jar > "$folder/thing-1.0.jar"
"""
FAILS = "#!/bin/sh\necho run >> \"$COUNTER_FILE\"\necho 'UNRESOLVED DEPENDENCY: org.example#thing;1.0'\nexit 1\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(maven.IVY_SETTINGS, raising=False)
    monkeypatch.setattr(maven.time, "sleep", lambda _: None)
    return tmp_path / "cache"


def fake_java(home: Path, script: str) -> Java:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(script.replace("$COUNTER_FILE", str(home / "runs")))
    program.chmod(0o755)
    return Java(home=home, major=17)


def runs(java: Java) -> int:
    return len((java.home / "runs").read_text().split())


def test_a_set_is_fetched_once(tmp_path: Path, cache: Path):
    java = fake_java(tmp_path / "jdk", FETCHES)
    said: list[str] = []
    folder = maven.jars("thing", ARTIFACTS, java, said.append)
    assert folder == maven.jars("thing", ARTIFACTS, java, said.append)
    assert cache in folder.parents
    assert (folder / "thing-1.0.jar").exists()
    assert runs(java) == 1
    assert said == ["fetching thing from Maven Central, once"]


def test_a_set_with_a_missing_jar_is_fetched_again(tmp_path: Path):
    java = fake_java(tmp_path / "jdk", FETCHES)
    folder = maven.jars("thing", ARTIFACTS, java, lambda _: None)
    (folder / "thing-1.0.jar").unlink()
    assert (maven.jars("thing", ARTIFACTS, java, lambda _: None) / "thing-1.0.jar").exists()
    assert runs(java) == 2


def test_many_at_once_fetch_once(tmp_path: Path):
    java = fake_java(tmp_path / "jdk", FETCHES)
    result: list[Path] = []
    threads = [
        threading.Thread(target=lambda: result.append(maven.jars("thing", ARTIFACTS, java, lambda _: None)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(result)) == 1
    assert len(result) == 4
    assert runs(java) == 1


def test_a_failure_is_tried_again_then_told_with_ivys_words(tmp_path: Path, cache: Path):
    java = fake_java(tmp_path / "jdk", FAILS)
    with pytest.raises(LocalStackError, match=r"UNRESOLVED DEPENDENCY(.|\n)*log="):
        maven.jars("thing", ARTIFACTS, java, lambda _: None)
    assert runs(java) == 3
    assert not list((cache / CACHE_NAME).glob(".*")), "nothing half-made stays behind"


def test_another_choice_of_artifacts_is_another_set(tmp_path: Path):
    java = fake_java(tmp_path / "jdk", FETCHES)
    artifacts = (Artifact(organisation="org.example", name="thing", revision="2.0"),)
    assert maven.jars("thing", ARTIFACTS, java, lambda _: None) != maven.jars("thing", artifacts, java, lambda _: None)
