"""Killed jobs, and the proof of records archived once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc

from archiver.config import load_config
from archiver.storage.spool import clean_spool
from catalog.model import FileState
from catalog.registry import Registry
from tests.fault.archive_process import archive_inline
from tests.support.engine.forked import run_forked
from tests.support.servers.stack import Stack

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
    """More batches than the clock's window: each partition gets two files."""
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
        (row,) = (item for item in registry.topics.every() if item.topic == topic)
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
