"""A job killed at any step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from archiver.config import load_config
from archiver.fault_points import FaultPoint
from tests.support.engine.killed_jobs import EACH, PARTITIONS, archive, archive_by_spark, assert_each_once, produce
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("point", [*FaultPoint])
def test_a_kill_loses_and_doubles_nothing(stack: Stack, point: FaultPoint) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    produce(stack, topic, 0)
    killed = archive(config, f"{point}:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, EACH)


@pytest.mark.parametrize(
    "fault", ["before_upload:kill@5", "after_stage:kill", "before_commit:kill", "after_commit:kill"]
)
def test_range_in_several_files_is_committed_whole_or_not_at_all(stack: Stack, fault: str) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"partition_by": ["day", "truncate(1, val.__raw__)", "bucket(2, kafka.offset)"]}})
    produce(stack, topic, 0)
    killed = archive(config, fault)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, EACH)


@pytest.mark.parametrize("point", [FaultPoint.AFTER_UPLOAD, FaultPoint.AFTER_STAGE, FaultPoint.AFTER_COMMIT])
def test_kill_after_kill_while_records_keep_coming(stack: Stack, point: FaultPoint) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    for turn in range(3):
        produce(stack, topic, turn * 1_000)
        killed = archive(config, f"{point}:kill@{turn % 2 + 1}")
        assert killed.returncode in (0, -signal.SIGKILL), killed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, 3 * EACH)


@pytest.mark.parametrize(
    "fault", ["after_stage:kill@5", "before_commit:kill@3", "after_commit:kill@2", "after_confirm:kill@4"]
)
def test_a_kill_amid_the_commits_of_several_topics(stack: Stack, fault: str) -> None:
    topics = [stack.topic(PARTITIONS) for _ in range(6)]
    config = stack.config({topic: {} for topic in topics})
    for topic in topics:
        produce(stack, topic, 0)
    killed = archive(config, fault)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    for topic in topics:
        assert_each_once(stack, config, topic, EACH)


def test_workers_of_spark_that_die_are_named_and_nothing_is_lost(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    produce(stack, topic, 0)
    failed = archive_by_spark(config, "after_upload:kill")
    assert failed.returncode == 1, failed.stderr
    assert f"{topic}/0: WorkerLost" in failed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, EACH)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_on_spark_in_order(stack: Stack, number: signal.Signals) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    produce(stack, topic, 0)
    command = [sys.executable, "-m", "tests.fault.archive_process", str(config)]
    environment = os.environ | {"ARCHIVER_FAULT": "before_upload:pause"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        spool = load_config(config).archive.spool
        eventually(lambda: list(spool.glob("task-*/*.parquet")) or job.poll() is not None, "a file", seconds=200)
        assert job.poll() is None, job.stderr and job.stderr.read()
        job.send_signal(number)
        output, errors = job.communicate(timeout=100)
    assert job.returncode == 0, errors
    assert output == "0\n"
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, EACH)
