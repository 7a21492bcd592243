"""`archiver compact` killed at every step: the archive gives the same records before, between and after."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from archiver.config import load_config
from archiver.fault_points import FaultPoint
from tests.fault.compact_process import compact
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.forked import run_forked
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS = 2
POINTS = (FaultPoint.BEFORE_UPLOAD, FaultPoint.AFTER_UPLOAD, FaultPoint.AFTER_STAGE, FaultPoint.AFTER_COMMIT)


def test_a_kill_at_any_step_changes_no_record(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    for start in range(0, 60, 20):
        stack.produce(topic, *numbered(range(start, start + 20), PARTITIONS))
        archive_once(config)
    kafka = from_kafka(stack, topic, PARTITIONS)
    for point in POINTS:
        killed = run_forked(compact, str(config), fault=f"{point}:kill")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert from_archive(config, topic, PARTITIONS) == kafka
    healed = run_forked(compact, str(config))
    assert (healed.returncode, healed.stdout) == (0, "0\n"), healed.stderr
    assert registered(config) == in_table(stack, config, topic)
    assert len(in_table(stack, config, topic)) == PARTITIONS
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        left = connection.execute("SELECT count(*) FROM metadata WHERE key = 'rewrite' AND NOT deleted").fetchone()
    assert left == (0,)


def registered(config: Path) -> set[str]:
    """The files that the registry holds to be in the table."""
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        found = connection.execute("SELECT path FROM files WHERE state = 'committed'").fetchall()
    return {path for (path,) in found}


def in_table(stack: Stack, config: Path, topic: str) -> set[str]:
    """The files that are."""
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    return set(table.inspect.data_files().column("file_path").to_pylist())
