"""`archiver archive` killed at random."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from archiver.config import load_config
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_200)]

PARTITIONS = 3
RECORDS_A_TURN = 6_000
RUN_S = 240.0
MOST_TURNS = 20
"""Each run that ends by itself makes the time shorter in which the next one is killed."""
ARCHIVER = Path(sys.executable).with_name("archiver")


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_kills_at_random_moments_leave_each_offset_once(stack: Stack, kills: int) -> None:
    seed = int(os.environ.get("ARCHIVER_KILL_SEED") or time.time_ns())
    noise = random.Random(seed)
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"target_file_size": "1MiB"}}, archive={"max_commit_interval": "1s"})
    usual = timed_run(stack, topic, config, noise)
    killed, turns = 0, 0
    while turns < kills or (not killed and turns < MOST_TURNS):
        turns += 1
        stack.produce(topic, *messages(noise))
        started = time.monotonic()
        if ends_within(config, noise.uniform(0, usual)):
            usual = (
                time.monotonic() - started
            )  # the first run made the table, and other processes may have slowed it down
        else:
            killed += 1
    assert killed, f"no run lived long enough to be killed (ARCHIVER_KILL_SEED={seed})"
    run_to_the_end(config)

    assert_each_once(stack, topic, config, seed, turns=turns + 1)


def timed_run(stack: Stack, topic: str, config: Path, noise: random.Random) -> float:
    stack.produce(topic, *messages(noise))
    started = time.monotonic()
    run_to_the_end(config)
    return time.monotonic() - started


def messages(noise: random.Random) -> list[dict[str, Any]]:
    return [
        {"value": noise.randbytes(noise.randrange(300)), "partition": number % PARTITIONS}
        for number in range(RECORDS_A_TURN)
    ]


def run_to_the_end(config: Path) -> None:
    done = subprocess.run(command(config), capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def ends_within(config: Path, seconds: float) -> bool:
    with subprocess.Popen(command(config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return False
        return True


def command(config: Path) -> list[str]:
    return [str(ARCHIVER), "archive", "--config", str(config), "--once"]


def assert_each_once(stack: Stack, topic: str, config: Path, seed: int, *, turns: int) -> None:
    hint = f"ARCHIVER_KILL_SEED={seed}"
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    kafka = table.scan(selected_fields=("kafka",)).to_arrow().column("kafka").to_pylist()
    expected = from_kafka(stack, topic, PARTITIONS)
    assert len(expected) == turns * RECORDS_A_TURN
    places = sorted((row["partition"], row["offset"]) for row in kafka)
    assert places == [(record.partition, record.offset) for record in expected], hint
    assert from_archive(config, topic, PARTITIONS) == expected, hint
