"""The container image in ARCHIVER_TEST_IMAGE: not root, read-only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.stack import Stack, unique

IMAGE = os.environ.get("ARCHIVER_TEST_IMAGE", "")
RUNNER = os.environ.get("BUILDER") or next((name for name in ("docker", "podman") if shutil.which(name)), "")
VERSION = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
RECORDS = 500

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not IMAGE or not RUNNER, reason="ARCHIVER_TEST_IMAGE names no image, or nothing here runs it"),
]


@pytest.fixture(scope="module")
def volume() -> Iterator[str]:
    name = unique("spool")
    yield name
    subprocess.run([RUNNER, "volume", "rm", "--force", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def archived(stack: Stack, volume: str) -> tuple[Path, str]:
    topic = stack.topic(2)
    stack.produce(topic, *({"key": f"k{n}", "value": f"v{n}", "partition": n % 2} for n in range(RECORDS)))
    config = stack.config({topic: {}}, archive={"spool": "/spool/archiver"})
    config.chmod(0o644)
    return config, topic


def command(*arguments: str, volume: str = "", config: Path | None = None, entry: str = "") -> list[str]:
    words = [RUNNER, "run", "--rm", "--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
    words += ["--no-healthcheck"]  # nobody asks it in so short a time, and podman wants systemd for it
    words += ["--env", "ARCHIVER__METRICS__LISTEN=127.0.0.1:19464"]
    words += ["--volume", f"{volume}:/spool"] if volume else []
    words += ["--volume", f"{config}:/etc/archiver/archiver.toml:ro"] if config else []
    words += ["--entrypoint", entry] if entry else []
    return [*words, IMAGE, *arguments]


def run(*arguments: str, volume: str = "", config: Path | None = None, entry: str = "") -> str:
    words = command(*arguments, volume=volume, config=config, entry=entry)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_says_its_version() -> None:
    assert VERSION in run("--version")


def test_it_is_not_root_and_cannot_write() -> None:
    assert run("-u", entry="id").strip() == "10001"
    tried = command("-c", "touch /opt/archiver/x; touch /etc/x; touch /spool/x && echo written", entry="sh")
    done = subprocess.run(tried, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.count("Read-only file system") == 2
    assert done.stdout == "written\n"


def test_it_has_no_compiler_and_no_pip() -> None:
    tools = run("-c", "for each in cc gcc clang pip pip3 make; do command -v $each; done; true", entry="sh")
    assert tools == ""


def test_it_archives_and_replays(archived: tuple[Path, str], volume: str) -> None:
    config, topic = archived
    run("archive", "--once", volume=volume, config=config)
    status = json.loads(run("status", "--json", volume=volume, config=config))
    (row,) = status["topics"]
    assert row["topic"] == topic
    assert sum(partition["archived_to"] for partition in row["partitions"]) == RECORDS
    lines = run("replay", topic, "--format", "jsonl", volume=volume, config=config).splitlines()
    assert len(lines) == RECORDS


def test_a_signal_ends_it(archived: tuple[Path, str], volume: str) -> None:
    config, _ = archived
    words = command("archive", "--every", "1s", volume=volume, config=config)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout
            assert any('"finished"' in line for line in started.stdout)  # the first round is over
            begun = time.monotonic()
            started.terminate()
            started.communicate(timeout=60)
        finally:
            started.kill()
    assert started.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - begun < 30
