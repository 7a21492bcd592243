"""Java that was started ahead: who joins it, and that it ends where nobody does. A script stands in for Spark's."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from archiver.engine import java_ahead as module
from archiver.engine.class_archive import class_archive_options
from archiver.engine.classic_settings import classic_settings
from archiver.engine.java import found_java
from archiver.engine.java_ahead import java_ahead, take_java

LISTENS = """
print("as Java says it", file=sys.stderr, flush=True)
path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
with open(path + ".part", "wb") as file:
    file.write(struct.pack(">ii", 4711, 6) + b"secret")
os.rename(path + ".part", path)
sys.stdin.read()
"""
LISTENS_AND_ENDS = LISTENS.replace("sys.stdin.read()", "")
NEVER_LISTENS = """
sys.stdin.read()
"""
STARTS_ANOTHER = """
import subprocess
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[0] + ".other", "w") as file:
    file.write(str(other.pid))
sys.stdin.read()
"""
STAYS = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[0] + ".stays", "w").close()
time.sleep(600)
"""
ENDS = """
print("no room for Java", file=sys.stderr, flush=True)
sys.exit(3)
"""


class Home:
    """A SPARK_HOME whose `spark-submit` notes its arguments and its number, and then does what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.noted = folder / "noted"

    def submits(self, what: str) -> None:
        script = self.folder / "bin" / "spark-submit"
        script.parent.mkdir(exist_ok=True)
        script.write_text(
            f"#!{sys.executable}\nimport os, struct, sys, time\n"
            f"open({str(self.noted)!r}, 'w').write('\\n'.join([str(os.getpid()), *sys.argv[1:]]))\n{what}"
        )
        script.chmod(0o755)

    @property
    def arguments(self) -> list[str]:
        return self._lines()[1:]

    @property
    def number(self) -> int:
        return int(self._lines()[0])

    @property
    def runs(self) -> bool:
        number = self.number
        return is_running(number)

    def _lines(self) -> list[str]:
        for _ in range(500):
            if self.noted.is_file() and (lines := self.noted.read_text().splitlines()):
                return lines
            time.sleep(0.02)
        raise AssertionError("nothing was started")


def is_running(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until_ended(home: Home) -> None:
    for _ in range(500):
        if not home.runs:
            return
        time.sleep(0.02)
    raise AssertionError("it still runs")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path)
    made.submits(LISTENS)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    return made


def test_a_session_with_the_same_settings_joins_it(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    options = {"master": "local[2]", "spark.driver.memory": "300m"}
    with java_ahead(options):
        java = take_java(classic_settings(options, ["some.module"], 3))
        assert java is not None
        with java.joined():
            told = os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        assert told == ("4711", "secret")
        assert "PYSPARK_GATEWAY_PORT" not in os.environ
        assert "PYSPARK_GATEWAY_SECRET" not in os.environ
    assert home.runs
    assert home.arguments[-1] == "pyspark-shell"
    given = dict(each.split("=", 1) for each in home.arguments[1:-1:2])
    assert given == dict(java.settings)
    assert (given["spark.master"], given["spark.driver.memory"]) == ("local[2]", "300m")
    assert not java.folder.exists()
    said = capfd.readouterr().err
    for _ in range(500):
        if "as Java says it" in said:
            break
        time.sleep(0.02)
        said += capfd.readouterr().err
    assert "as Java says it" in said
    java.give_up()
    assert not home.runs


def test_what_it_said_goes_with_the_error_of_a_session_that_does_not_start(
    home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    with java_ahead({"master": "local[2]"}):
        java = take_java(classic_settings({"master": "local[2]"}))
        assert java is not None
        with pytest.raises(RuntimeError) as raised, java.joined():
            raise RuntimeError("no session")
    assert raised.value.__notes__ == ["as Java says it"]
    assert "PYSPARK_GATEWAY_PORT" not in os.environ
    java.give_up()
    assert "as Java says it" not in capfd.readouterr().err
    assert not home.runs


def test_it_is_for_one_session(home: Home) -> None:
    settings = classic_settings({"master": "local[2]"})
    with java_ahead({"master": "local[2]"}):
        java = take_java(settings)
        assert java is not None
        assert take_java(settings) is None
    java.give_up()
    assert not home.runs


def test_a_session_with_other_settings_starts_its_own(home: Home) -> None:
    with java_ahead({"master": "local[2]"}):
        assert home.runs
        assert take_java(classic_settings({"master": "local[2]", "spark.driver.memory": "300m"})) is None
        assert not home.runs


def test_where_it_has_ended_the_session_starts_its_own(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    home.submits(ENDS)
    with java_ahead({"master": "local[2]"}):
        assert take_java(classic_settings({"master": "local[2]"})) is None
    assert "no room" not in capfd.readouterr().err


def test_where_it_ends_after_it_said_where_it_listens(home: Home) -> None:
    home.submits(LISTENS_AND_ENDS)
    with java_ahead({"master": "local[2]"}):
        until_ended(home)
        assert take_java(classic_settings({"master": "local[2]"})) is None


def test_where_it_takes_too_long(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", 0.2)
    home.submits(NEVER_LISTENS)
    with java_ahead({"master": "local[2]"}):
        assert home.runs
        assert take_java(classic_settings({"master": "local[2]"})) is None
        assert not home.runs


def test_what_it_wrote_may_be_gone_long_before_a_session_starts(home: Home) -> None:
    with java_ahead({"master": "local[2]"}):
        (java,) = module._WAITING
        for _ in range(500):
            if not java.folder.exists():
                break
            time.sleep(0.02)
        assert not java.folder.exists()
        assert take_java(classic_settings({"master": "local[2]"})) is java
    java.give_up()


def test_one_that_does_not_end_when_asked_is_killed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.2)
    home.submits(STAYS)
    with java_ahead({"master": "local[2]"}):
        while not (home.folder / "bin" / "spark-submit.stays").exists():
            assert home.runs
            time.sleep(0.02)
    assert not home.runs


def test_what_it_starts_ends_with_it(home: Home) -> None:
    home.submits(STARTS_ANOTHER)
    noted = home.folder / "bin" / "spark-submit.other"
    with java_ahead({"master": "local[2]"}):
        for _ in range(500):
            if noted.exists() and noted.read_text():
                break
            time.sleep(0.02)
        other = int(noted.read_text())
        assert is_running(other)
    for _ in range(500):
        if not is_running(other):
            return
        time.sleep(0.02)
    raise AssertionError("the other one still runs")


def test_an_interrupt_is_not_for_it(home: Home) -> None:
    with java_ahead({"master": "local[2]"}):
        (java,) = module._WAITING
        assert java.is_ready()
        os.kill(home.number, signal.SIGINT)
        time.sleep(0.3)
        assert home.runs
        assert os.getpgid(home.number) == home.number != os.getpgid(0)


def test_it_is_not_the_one_that_writes_the_archive_of_classes(home: Home) -> None:
    options = {"master": "local[2]"}
    with java_ahead(options):
        assert not any("Archive" in each for each in home.arguments), "the first start of all has none"
    home.noted.unlink()
    with java_ahead(options):
        assert module._WAITING == [], "the session's own start is to write it"
    assert not home.noted.exists()
    (writes, *_) = class_archive_options(found_java(os.environ)[0], 17, classic_settings(options))
    name, _, writing = writes.partition("=")
    assert name == "-XX:ArchiveClassesAtExit", "nobody claimed it before"
    Path(writing).write_bytes(bytes.fromhex("a8ab0bf0"))
    os.utime(writing, (time.time() - 60,) * 2)
    with java_ahead(options):
        assert any("-XX:SharedArchiveFile=" in each for each in home.arguments)


def test_it_ends_where_no_session_was_needed(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    with java_ahead({"master": "local[2]"}):
        assert home.runs
    assert not home.runs
    assert take_java(classic_settings({"master": "local[2]"})) is None
    assert capfd.readouterr().err == ""


def test_it_ends_with_an_error_of_the_job(home: Home) -> None:
    def failing() -> None:
        with java_ahead({"master": "local[2]"}):
            assert home.runs
            raise RuntimeError("the job's")

    with pytest.raises(RuntimeError, match="the job's"):
        failing()
    assert not home.runs


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ({"remote": "sc://somewhere"}, {}),
        ({"master": "spark://somewhere:7077"}, {}),
        ({"master": "local[2]", "spark.jars.packages": "a:b:1"}, {}),
        ({"master": "local[2]", "spark.submit.pyFiles": "a.py"}, {}),
        ({"master": "local[2]", "spark.api.mode": "connect"}, {}),
        ({"master": "local[2]"}, {"PYSPARK_SUBMIT_ARGS": "--packages a:b:1 pyspark-shell"}),
        ({"master": "local[2]"}, {"PYSPARK_GATEWAY_PORT": "1"}),
        ({"master": "local[2]"}, {"SPARK_REMOTE": "sc://somewhere"}),
        ({"master": "local[2]"}, {"SPARK_CONNECT_MODE": "1"}),
        ({"master": "local[2]"}, {"JAVA_HOME": "/nowhere"}),
        ({"master": "local[2]"}, {"SPARK_HOME": "/nowhere"}),
    ],
)
def test_nothing_is_started_ahead_where_it_would_be_another_or_cannot_be(
    home: Home, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with java_ahead(options):
        assert module._WAITING == []
    assert not home.noted.exists()


def test_nothing_is_started_ahead_of_settings_in_a_file(home: Home) -> None:
    """They may have Java fetch jars."""
    (home.folder / "conf").mkdir()
    (home.folder / "conf" / "spark-defaults.conf").write_text("spark.jars.packages a:b:1")
    with java_ahead({"master": "local[2]"}):
        assert module._WAITING == []


def test_nothing_is_started_ahead_where_pyspark_is_there(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", module)
    with java_ahead({"master": "local[2]"}):
        assert module._WAITING == []


def test_a_job_that_needs_no_session_changes_no_variables(home: Home) -> None:
    before = dict(os.environ)
    with java_ahead({"master": "local[2]"}):
        assert home.runs
    assert dict(os.environ) == before


def test_where_there_is_no_room_for_another_process(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no process")

    found_java(os.environ)
    monkeypatch.setattr("archiver.engine.java_ahead.subprocess.Popen", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with java_ahead({"master": "local[2]"}):
        assert module._WAITING == []
    assert not list(tmp_path.glob("archiver-java-*"))
