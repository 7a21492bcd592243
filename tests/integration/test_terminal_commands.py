"""`init`, `topics`, `check` and `status --watch` in real terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique
from tests.support.terminal.pseudo_terminal import ARCHIVER, Seen, run, run_elsewhere, terminal_environment

pytestmark = pytest.mark.integration
WIDTHS = (80, 50)
NOISE = re.compile(r"WARN |ERROR|INFO|kafka\.net|py4j|log4j|Traceback|incubator")


def archiver(
    config: Path, *arguments: str, columns: int, on_frame: Callable[[int, int, str], None] | None = None
) -> Seen:
    environment = {"ARCHIVER_CONFIG": str(config)}
    seen = run([*ARCHIVER, *arguments], columns=columns, environment=environment, timeout=240, on_frame=on_frame)
    assert max(map(len, seen.screen.lines)) <= columns
    assert "…" not in seen.text
    assert not NOISE.search(seen.text), seen.text
    return seen


def test_from_nothing_to_a_checked_configuration(stack: Stack, tmp_path: Path) -> None:
    prefix = unique("seen")
    topics = [stack.topic(2, name=f"{prefix}.{kind}") for kind in ("orders", "payments")]
    stack.produce(topics[0], *({"value": b'{"n": 1}'} for _ in range(1_234)))
    base = stack.config({}, spark={"master": "local[2]"})
    config = tmp_path / "archiver.toml"

    for columns in WIDTHS:
        made = archiver(config, "init", "--from", str(base), "--topic", f"{prefix}*", "--force", columns=columns)
        assert made.exit_code == 0
        assert f"Wrote {config} with 2 topics.".replace(" ", "") in made.flat.replace(" ", "")
        assert set(tomllib.loads(config.read_text())["topics"]) == set(topics)

        listed = archiver(config, "topics", f"{prefix}*", columns=columns)
        assert listed.exit_code == 0
        for word in ("1,234", "2 topics in cluster"):
            assert word in listed.flat
        for topic in topics:
            assert topic in listed.text

        again = archiver(config, "init", "--from", str(base), columns=columns)
        assert again.exit_code == 2
        assert "give --force to replace it" in again.flat

    whole = archiver(config, "check", columns=80)
    assert whole.exit_code == 0, whole.text
    assert re.search(r"ok +\d+\.\d s Spark: Spark \d+\.\d+\.\d+, 2 slots, workers on Python 3\.", whole.flat)
    assert whole.text.endswith("All is well.")
    for part in ("Configuration", "Spool", "Java", "Kafka", "Postgres", "Catalog", "Store", "Schema registry"):
        assert f" s {part}" in whole.flat

    narrow = archiver(config, "check", "--no-spark", columns=50)
    assert narrow.exit_code == 0, narrow.text
    assert "Spark: not started, as asked" in narrow.flat
    assert f"Kafka topic {topics[0]}: described and read: 2 partitions, 1,234 offsets".replace(" ", "") in (
        narrow.flat.replace(" ", "")
    )

    config.write_text(config.read_text() + "\n[topics.nowhere]\n")
    for columns in WIDTHS:
        failed = archiver(config, "check", "--no-spark", columns=columns)
        assert failed.exit_code == 1
        assert "FAILED" in failed.text
        assert "Kafka topic nowhere: UnknownTopic:" in failed.flat
        assert re.search(r"1 of \d+ failed: Kafka\.$", failed.flat)


def test_off_a_terminal_they_answer_in_text_or_json(stack: Stack) -> None:
    topic = stack.topic()
    environment = {"ARCHIVER_CONFIG": str(stack.config({topic: {}}, spark={"master": "local[2]"}))}
    checked = run_elsewhere([*ARCHIVER, "check", "--json"], environment, timeout=240)
    assert (checked.returncode, checked.stderr) == (0, "")
    checks = {entry["part"]: entry for entry in json.loads(checked.stdout)["checks"]}
    assert checks["Spark"]["outcome"] == "ok"
    assert "2 slots, workers on Python" in checks["Spark"]["detail"]
    listed = run_elsewhere([*ARCHIVER, "topics", topic, "--json"], environment)
    assert [entry["topic"] for entry in json.loads(listed.stdout)["topics"]] == [topic]
    plain = run_elsewhere([*ARCHIVER, "topics", topic], environment)
    assert topic in plain.stdout
    assert "\x1b" not in plain.stdout


def test_spark_that_does_not_start_is_one_finding_among_others(stack: Stack) -> None:
    config = stack.config({stack.topic(): {}}, spark={"master": "spark://127.0.0.1:1"})
    seen = archiver(config, "check", "--timeout", "4s", columns=80)
    assert seen.exit_code == 1
    assert seen.flat.count("FAILED") == 1
    assert re.search(r"FAILED +\d+\.\d s Spark: ", seen.flat)
    assert seen.text.count(" ok ") + seen.text.count("ok  ") >= 6
    assert "at org.apache" not in seen.text
    assert re.search(r"1 of \d+ failed: Spark\.$", seen.flat)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_watched_status_follows_what_happens(stack: Stack, columns: int) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": number % 2} for number in range(1_500)))
    archive_once(config, topic, engine=InlineEngine())
    done: list[str] = []

    def follow(pid: int, _: int, shown: str) -> None:
        flat = " ".join(shown.split())
        if not done and "up to date" in flat:
            stack.produce(topic, *({"value": b"late", "partition": 1} for _ in range(1_234)))
            done.append("produced")
        elif len(done) == 1 and "1,234" in flat and "behind" in flat:
            os.kill(pid, signal.SIGINT)
            done.append("stopped")

    seen = archiver(config, "status", "--watch", "--every", "1s", columns=columns, on_frame=follow)
    assert seen.exit_code == 130
    assert done == ["produced", "stopped"]
    assert any("up to date" in frame for frame in seen.frames)
    assert re.match(r"\d\d:\d\d:\d\d", seen.screen.lines[0])
    assert f"{topic}" in seen.text
    assert "1,234" in seen.text  # the last look stays when the screen is given back
    assert seen.text.count(topic) == 1


def test_a_watched_status_is_lines_off_a_terminal(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, {"value": b"x"})
    command = [*ARCHIVER, "status", "--watch", "--every", "1s", "--json", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=terminal_environment({})) as process:
        try:
            assert process.stdout
            looks = [json.loads(process.stdout.readline()) for _ in range(3)]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert [look["event"] for look in looks] == ["status"] * 3
    assert all(look["error"] is None and look["topics"][0]["lag_records"] == 1 for look in looks)
    assert process.returncode == 128 + signal.SIGTERM
