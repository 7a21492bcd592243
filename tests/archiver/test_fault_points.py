from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from archiver.errors import ConfigError, InjectedFault
from archiver.fault_points import FaultPoint, pass_point


def test_without_the_variable_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCHIVER_FAULT", raising=False)
    for point in FaultPoint:
        pass_point(point)


def test_only_the_named_point_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_FAULT", "after_stage:raise")
    pass_point(FaultPoint.AFTER_UPLOAD)
    with pytest.raises(InjectedFault, match="after_stage"):
        pass_point(FaultPoint.AFTER_STAGE)


def test_a_later_passage_can_be_meant():
    program = """
from archiver.fault_points import FaultPoint, pass_point
for passage in range(3):
    print(passage, flush=True)
    pass_point(FaultPoint.AFTER_COMMIT)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"ARCHIVER_FAULT": "after_commit:kill@2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9
    assert done.stdout.split() == ["0", "1"]


def test_a_process_is_suspended_and_goes_on():
    program = """
from archiver.fault_points import FaultPoint, pass_point
pass_point(FaultPoint.AFTER_COMMIT)
print("on")
"""
    environment = {"ARCHIVER_FAULT": "after_commit:stop@1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, b"on\n")


@pytest.mark.parametrize("value", ["after_lunch:kill", "after_stage:explode"])
def test_a_mistake_in_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ARCHIVER_FAULT", value)
    with pytest.raises(ConfigError, match="ARCHIVER_FAULT"):
        pass_point(FaultPoint.AFTER_STAGE)
