"""No CPU second of a process that ends is lost or counted twice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.archiving.cost import DRIVER, JVM, WORKERS, Key, ProcessCost, family, measured, spent

DRIVERS, JAVA, DAEMON, WORKER, OTHER = ((pid, float(pid)) for pid in range(1, 6))


def looked(**own_and_ended: tuple[float, float]) -> dict[Key, ProcessCost]:
    whole: dict[str, tuple[Key, str, Key | None]] = {
        "driver": (DRIVERS, DRIVER, None),
        "java": (JAVA, JVM, DRIVERS),
        "daemon": (DAEMON, WORKERS, JAVA),
        "worker": (WORKER, WORKERS, DAEMON),
        "other": (OTHER, WORKERS, DAEMON),
    }
    return {
        key: ProcessCost(kind=kind, parent=parent, own=own_and_ended[name][0], ended=own_and_ended[name][1])
        for name, (key, kind, parent) in whole.items()
        if name in own_and_ended
    }


BEFORE = looked(driver=(10, 0), java=(20, 0.5), daemon=(1, 4), worker=(5, 0))


@pytest.mark.parametrize(
    ("after", "workers"),
    [
        (looked(driver=(11, 0), java=(22, 0.5), daemon=(1.5, 4), worker=(8, 0)), 3.5),
        (looked(driver=(11, 0), java=(22, 0.5), daemon=(1.5, 13), other=(2, 0)), 0.5 + 4 + 2),
        (looked(driver=(11, 0), java=(22, 0.5), daemon=(1.5, 7), worker=(5, 0)), 0.5 + 3),
        (looked(driver=(11, 0), java=(22, 0.5 + 1.5 + 13)), 0.5 + 4),
        (looked(driver=(11, 0), java=(22, 0.5 + 1.5 + 4)), 0.0),
    ],
    ids=["all go on", "one ended, one began", "one came and went", "all ended", "nobody waited for the worker"],
)
def test_seconds_by_kind(after: dict[Key, ProcessCost], workers: float) -> None:
    assert spent(BEFORE, after) == pytest.approx({DRIVER: 1, JVM: 2, WORKERS: workers})


def test_what_came_and_went_unseen_is_what_its_parent_starts() -> None:
    after = looked(driver=(10, 7), java=(20, 2.5), daemon=(1, 4), worker=(5, 0))
    assert spent(BEFORE, after) == pytest.approx({DRIVER: 0, JVM: 7, WORKERS: 2})


def test_a_process_that_begins_and_one_that_ends_in_a_turn_count() -> None:
    spin = "import time\nwhile time.process_time() < %s: pass\n%s"
    first = subprocess.Popen(
        [sys.executable, "-c", spin % (0.3, "print(1, flush=True); input()\n" + spin % (0.6, ""))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdout is not None
    first.stdout.readline()
    assert any(key[0] == first.pid for key in family())

    def turn() -> int:
        first.communicate(b"\n")
        subprocess.run([sys.executable, "-c", spin % (0.4, "")], check=True)
        return 1

    cost = measured(turn)
    assert cost.split[DRIVER] < 0.3
    assert sum(cost.split.values()) == pytest.approx(0.3 + 0.4, abs=0.15)
    assert cost.cpu_seconds == sum(cost.split.values())
    assert os.getpid() in {pid for pid, _ in family()}
