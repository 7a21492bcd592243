"""Whatever step a job is killed at, the next run ends with every record in the table, each exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.compute as pc
import pytest

from archiver.config import load_config
from archiver.fault_points import FaultPoint
from archiver.storage.spool import clean_spool
from catalog.model import FileState
from catalog.registry import Registry
from tests.fault.archive_process import archive_inline
from tests.forked import run_forked
from tests.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS, EACH = 3, 240
DAY = 86_400_000


def archive(config: Path, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    return run_forked(archive_inline, str(config), fault=fault)


def archive_by_spark(config: Path, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ARCHIVER_FAULT"}
    return subprocess.run(
        [sys.executable, "-m", "tests.fault.archive_process", str(config)],
        env=environment | ({"ARCHIVER_FAULT": fault} if fault else {}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def produce(stack: Stack, topic: str, base: int) -> None:
    """`EACH` records for each partition, of two days: more batches a day than the clock's window, so two files."""
    for day in range(2):
        stack.produce(
            topic,
            *(
                {"value": b"%d" % (base + n), "partition": n % PARTITIONS, "timestamp": 1_767_225_600_000 + day * DAY}
                for n in range(PARTITIONS * EACH // 2)
            ),
            batch_num_messages=1,
        )


def assert_each_once(stack: Stack, config: Path, topic: str, each: int) -> None:
    settings = load_config(config)
    iceberg = stack.catalog().load_table(settings.topic(topic).table)
    kafka = iceberg.scan().to_arrow().column("kafka").combine_chunks()
    places = sorted(
        zip(pc.struct_field(kafka, "partition").to_pylist(), pc.struct_field(kafka, "offset").to_pylist(), strict=True)
    )
    assert places == [(partition, offset) for partition in range(PARTITIONS) for offset in range(each)]
    with Registry(settings.registry.dsn) as registry:
        (row,) = registry.topics.every()
        counts = registry.files.counts(row)
    assert counts[FileState.UPLOADED].ranges == 0
    assert counts[FileState.COMMITTED].rows == PARTITIONS * each
    assert counts[FileState.COMMITTED].ranges >= 2 * PARTITIONS
    if settings.archive.spool.exists():
        # A kill while a task's folder is made or removed leaves it without its lock; it goes when it is a minute old.
        left = list(settings.archive.spool.iterdir())
        assert [path.name for path in left if (path / "lock").exists()] == []
        for path in left:
            os.utime(path, (0, 0))
        clean_spool(settings.archive.spool)
        assert list(settings.archive.spool.iterdir()) == []


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


def test_workers_of_spark_that_die_are_named_and_nothing_is_lost(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    produce(stack, topic, 0)
    failed = archive_by_spark(config, "after_upload:kill")
    assert failed.returncode == 1, failed.stderr
    assert f"{topic}/0: WorkerLost" in failed.stderr
    healed = archive_by_spark(config)
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
        end = time.monotonic() + 200
        while not list(spool.glob("task-*/*.parquet")):
            assert time.monotonic() < end
            assert job.poll() is None, job.stderr and job.stderr.read()
            time.sleep(0.2)
        job.send_signal(number)
        output, errors = job.communicate(timeout=100)
    assert job.returncode == 0, errors
    assert output == "0\n"
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert_each_once(stack, config, topic, EACH)
