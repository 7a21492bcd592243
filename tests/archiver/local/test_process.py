"""Detached processes are recognised and stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from archiver.errors import LocalStackError
from archiver.local import process
from archiver.local.process import Launch, ProcessMark
from tests.support.timing.eventually import eventually

SLEEPER = (sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(60)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True); time.sleep(60)",
)


def started(folder: Path, argv: tuple[str, ...]) -> ProcessMark:
    log = folder / "log"
    mark = process.spawn(Launch(argv=argv, cwd=folder, log=log))
    eventually(lambda: b"awake" in log.read_bytes(), "it is awake")
    return mark


def test_a_spawned_process_is_found_and_stopped(tmp_path: Path):
    mark = started(tmp_path, SLEEPER)
    assert process.is_running(mark)
    assert process.stop(mark, with_signal=signal.SIGTERM, timeout=5)
    assert not process.is_running(mark)
    assert not process.stop(mark, with_signal=signal.SIGTERM, timeout=5)


def test_it_is_no_child_of_ours_and_has_a_session_of_its_own(tmp_path: Path):
    mark = started(tmp_path, SLEEPER)
    try:
        assert mark.pid not in {child.pid for child in psutil.Process().children(recursive=True)}
        assert os.getsid(mark.pid) != os.getsid(0)
    finally:
        process.stop(mark, with_signal=signal.SIGTERM, timeout=5)


def test_what_ignores_the_signal_is_ended_by_force(tmp_path: Path):
    mark = started(tmp_path, STUBBORN)
    assert process.stop(mark, with_signal=signal.SIGTERM, timeout=0.2)
    assert not process.is_running(mark)


@pytest.mark.parametrize("change", [{"started": 1.0}, {"program": "postgres"}])
def test_a_reused_pid_is_not_ours(tmp_path: Path, change: dict[str, object]):
    with subprocess.Popen(["/bin/sleep", "60"]) as second:
        eventually(psutil.Process(second.pid).cmdline, "the kernel has set it up")
        mark = ProcessMark(pid=second.pid, started=psutil.Process(second.pid).create_time(), program="sleep")
        stale = replace(mark, **change)
        try:
            assert process.is_running(mark)
            assert not process.is_running(stale)
            assert not process.stop(stale, with_signal=signal.SIGKILL, timeout=1)
            assert second.poll() is None
        finally:
            second.kill()


def test_secrets_of_the_callers_environment_stay_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    assert process.environment({"KEY": "value"}).keys() >= {"PATH", "KEY"}
    assert "AWS_SECRET_ACCESS_KEY" not in process.environment({})


def test_a_missing_program_says_so_in_the_log(tmp_path: Path):
    log = tmp_path / "log"
    with contextlib.suppress(LocalStackError):  # it may end before it can be marked
        mark = process.spawn(Launch(argv=("/nonexistent/server",), cwd=tmp_path, log=log))
        eventually(lambda: not process.is_running(mark), "it ends")
    assert "not found" in process.tail(log)


def test_tail_shows_the_last_lines_only(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("\n".join(str(number) for number in range(100_000)))
    assert process.tail(log, lines=2) == "  | 99998\n  | 99999"
    assert "no log" in process.tail(tmp_path / "none")
    log.write_text("")
    assert "empty" in process.tail(log)
