"""Jobs in terminals and pipes."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.servers.stack import Stack
from tests.support.terminal.pseudo_terminal import ARCHIVER, Seen, run, run_elsewhere

pytestmark = pytest.mark.integration
NOISE = re.compile(r"WARN|ERROR|INFO|kafka\.net|py4j|log4j|Traceback|incubator", re.IGNORECASE)


def archiver(
    config: Path, *arguments: str, columns: int, on_frame: Callable[[int, int, str], None] | None = None
) -> Seen:
    environment = {"ARCHIVER_CONFIG": str(config)}
    return run([*ARCHIVER, *arguments], columns=columns, environment=environment, timeout=240, on_frame=on_frame)


def test_a_job_on_terminals_and_off_them(stack: Stack) -> None:
    topic = stack.topic(partitions=2)
    table = f"kafka.{topic}"
    config = stack.config({topic: {"table": table}}, spark={"master": "local[2]"})
    stack.produce(topic, *({"value": b"x" * 100, "partition": number % 2} for number in range(6_000)))

    behind = archiver(config, "status", columns=50)
    assert f"{topic} records behind 6,000" in behind.flat

    once = archiver(config, "archive", columns=80)
    assert once.exit_code == 0
    assert once.text.startswith(f"{topic} into {table}\n")
    assert re.search(
        r"6,000 records, \d+\.\d [kM]B read, in .* \([\d,]+ records/s, \d+\.\d [kM]B/s\), done$", once.flat
    )
    assert any("Wave 1: 2 tasks for 2 partitions of 1 topic" in frame for frame in once.frames)
    assert any(re.search(r"\d of 6,000 offsets|6,000 offsets to do", frame) for frame in once.frames)
    assert not NOISE.search(once.text)

    rounds = archiver(config, "archive", "--every", "1s", columns=50, on_frame=stops_when_idle())
    idle = [line for line in rounds.screen.lines if re.match(r"\d\d:\d\d:\d\d  nothing new, \d+\.\d s$", line)]
    assert len(idle) == 1, "it is printed when it begins, then once an hour"
    assert rounds.text.count(topic) == 2  # as it is opened: in the topic's name, and in the table's
    assert not NOISE.search(rounds.text)

    for columns in (80, 50):
        status = archiver(config, "status", "--partitions", columns=columns)
        assert status.exit_code == 0
        assert "up to date" in archiver(config, "status", columns=columns).flat
        assert status.flat.count("3,000") >= 2
        assert "…" not in status.text
        assert max(map(len, status.screen.lines)) <= columns

    piped = run_elsewhere([*ARCHIVER, "archive", "--json"], {"ARCHIVER_CONFIG": str(config)}, timeout=240)
    assert piped.returncode == 0
    assert piped.stderr == ""
    assert [json.loads(line)["event"] for line in piped.stdout.splitlines()][-1] == "finished"


def stops_when_idle() -> Callable[[int, int, str], None]:
    stopped: list[int] = []

    def look(pid: int, _: int, shown: str) -> None:
        if not stopped and "nothing new" in shown:
            os.kill(pid, signal.SIGTERM)
            stopped.append(pid)

    return look
